package survey

import (
	"fmt"
	"math/bits"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
)

// A handleSet is the handles that tables have of the records of one blob file: two bits for each record. A nil set has
// none.
type handleSet struct {
	records uint64
	blocks  []handleBlock
}

// handlesPerBlock is how many records a block of a handleSet is about.
const handlesPerBlock = 64

// A handleBlock is the handles of 64 records: which of them have one, and the sum of what the handles say. Records that
// are those of the handles have the same sum.
type handleBlock struct {
	has uint64
	sum uint64
}

func newHandleSet(records uint64) *handleSet {
	return &handleSet{records: records, blocks: make([]handleBlock, (records+handlesPerBlock-1)/handlesPerBlock)}
}

// at returns the block of a record, and the bit that is the record's there.
func (s *handleSet) at(ordinal uint64) (b *handleBlock, bit uint64) {
	return &s.blocks[ordinal/handlesPerBlock], 1 << (ordinal % handlesPerBlock)
}

// add adds a handle of a key; its record must be in the set's file. It reports whether the record had none before.
func (s *handleSet) add(key []byte, h blob.Handle) bool {
	b, bit := s.at(h.Ordinal)
	if b.has&bit != 0 {
		return false
	}
	b.has |= bit
	b.sum += handleSum(key, h)
	return true
}

// meet takes the handle of a record that is there off the set.
func (s *handleSet) meet(key []byte, h blob.Handle) {
	if s == nil || h.Ordinal >= s.records {
		return
	}
	if b, bit := s.at(h.Ordinal); b.has&bit != 0 {
		b.has &^= bit
		b.sum -= handleSum(key, h)
	}
}

// left reports whether every handle has met its record; if not, of which records one has not.
func (s *handleSet) left() (first, last uint64, ok bool) {
	if s == nil {
		return 0, 0, true
	}
	for i, b := range s.blocks {
		first = uint64(i) * handlesPerBlock
		switch {
		case b.has != 0:
			return first + uint64(bits.TrailingZeros64(b.has)), first + uint64(bits.Len64(b.has)) - 1, false
		case b.sum != 0:
			return first, min(first+handlesPerBlock, s.records) - 1, false
		}
	}
	return 0, 0, true
}

// handleSum is a hash of what a table's handle of a key has in common with the record that it means. Its bits are mixed
// so that sums of different handles differ, those of exchanged ones too.
func handleSum(key []byte, h blob.Handle) uint64 {
	sum := filterpolicy.Hash(key)
	for _, n := range []uint64{uint64(h.Offset), uint64(h.Length), uint64(h.Size)} {
		sum = (sum ^ n) * 0x9e3779b97f4a7c15
		sum ^= sum >> 29
	}
	return sum * 0xbf58476d1ce4e5b9
}

// noteHandle notes an entry of a table that the manifest lists, which has a handle. It reports entries that no store
// has.
func (s *Store) noteHandle(k base.InternalKey, value []byte) error {
	h, _, err := blob.HandleOf(k.Kind(), value)
	if err != nil {
		return err
	}
	l, ok := s.Manifest.Blobs[h.File]
	if !ok {
		return fmt.Errorf("%s has a handle of blob file %d, which the manifest does not list", k, h.File)
	}
	handles, known := s.handles[h.File]
	if !known {
		size, err := s.fs.Stat(s.path(l.Name()))
		if err != nil {
			size = 0 // readBlobs says so
		}
		handles = newHandleSet(min(l.Records, uint64(size))) // a record has a byte
		s.handles[h.File] = handles
	}
	switch {
	case handles.records == 0:
		return nil
	case h.Ordinal >= handles.records:
		return fmt.Errorf("%s has a handle of record %d of blob file %d, which has %d", k, h.Ordinal, h.File,
			handles.records)
	case !handles.add(k.User, h):
		return fmt.Errorf("%s has a handle of record %d of blob file %d, and so has another entry", k, h.Ordinal,
			h.File)
	}
	return nil
}

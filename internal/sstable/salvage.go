package sstable

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/siftkv/siftkv/blockindex"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// SalvageOptions say what is known of a damaged file from elsewhere.
type SalvageOptions struct {
	// Name is what errors call the file.
	Name string
	// ID is the file's id, 0 if only the file itself can tell.
	ID uint64
	// Seq, if not zero, is the sequence number of all entries, as of ReaderOptions.
	Seq base.SeqNum
}

// A Gap is a piece of a file in which entries may have been lost: versions of keys from After to Before, both included.
// A nil After has no lower bound, a nil Before no upper one.
type Gap struct {
	Offset, Length int64
	After, Before  []byte
	What           string
}

// A Salvage says what was recovered from a damaged file, and what was not.
type Salvage struct {
	ID         uint64
	Properties *Properties // nil if they are damaged
	Blocks     uint64      // data blocks that check out
	Entries    uint64      // in these
	Gaps       []Gap       // in the order of the file
	Tombstones []rangedel.Tombstone
	// TombstonesLost is set if the file's range tombstones are damaged. If Properties
	// is nil as well, there may have been none.
	TombstonesLost bool
	Tail           []error // faults after the data blocks, which cost no entries
}

// EntriesLost returns how many point entries were lost, if that is known.
func (s *Salvage) EntriesLost() (n uint64, known bool) {
	if s.Properties == nil || s.Properties.Entries < s.Entries {
		return 0, false
	}
	return s.Properties.Entries - s.Entries, true
}

// SalvageFile calls add with every point entry of every data block that checks out in a file of size bytes, in order;
// key and value are valid during the call. It recognizes blocks by their checksums and their form, and needs of the
// rest no more than the file's id. If that is not given and the footer is damaged, the footer's is used if two blocks
// confirm it. Pieces that cannot be read count as damaged. Time is linear in size and in what add is given, except for
// a sort, whatever the bytes are. The file is held in memory.
//
// It returns an error if add does, if the file's id is not known, or if a newer version of this package wrote the file.
func SalvageFile(f io.ReaderAt, size int64, o *SalvageOptions,
	add func(k base.InternalKey, value []byte) error) (*Salvage, error) {
	opts := cmp.Or(o, &SalvageOptions{})
	s := &salvager{name: opts.Name, seq: opts.Seq, data: readAround(f, size), add: add, limit: int(size),
		out: &Salvage{}}
	if err := s.run(opts.ID); err != nil {
		return nil, err
	}
	return s.out, nil
}

// readAround returns the file's bytes, with zeros for those that cannot be read.
func readAround(f io.ReaderAt, size int64) []byte {
	const piece = 4 << 10
	data := make([]byte, size)
	if readFull(f, data, 0) == nil {
		return data
	}
	for at := int64(0); at < size; at += piece {
		b := data[at:min(at+piece, size)]
		if readFull(f, b, at) != nil {
			clear(b)
		}
	}
	return data
}

// A salvager goes through a file's blocks.
type salvager struct {
	name  string
	seq   base.SeqNum // not zero: of all entries
	data  []byte
	limit int // no data block goes on after it
	add   func(base.InternalKey, []byte) error
	out   *Salvage

	footer   *footer
	starts   []int // offsets at which blocks begin, ascending, as far as the index tells
	complete bool  // it tells all of them
	largest  int   // bytes of the largest block so far
	ends     *blockEnds
	work     int // bytes checksummed and decoded, and beginnings tried
	refused  int // of it, for blocks of which the form was wrong

	last    base.InternalKey
	dataEnd int  // of the last data block that checks out
	pending *Gap // the next entry is its upper bound
}

func (s *salvager) tailFault(format string, args ...any) {
	s.out.Tail = append(s.out.Tail, base.Corruptf(s.name, int64(s.limit), format, args...))
}

// run salvages the file. Known is its id, 0 if it is not known.
func (s *salvager) run(known uint64) error {
	if err := s.identify(known); err != nil {
		return err
	}
	s.readTail()
	if err := s.walk(); err != nil {
		return err
	}
	s.finish()
	return nil
}

// identify finds the file's id: that of the footer if it checks out, the caller's, or
// that of a damaged footer if several blocks confirm it.
func (s *salvager) identify(known uint64) error {
	if len(s.data) >= footerSize {
		raw := s.data[len(s.data)-footerSize:]
		f, err := decodeFooter(raw, int64(len(s.data)))
		switch {
		case err == nil:
			s.footer, s.out.ID = &f, f.tableID
			return nil
		case errors.Is(err, ErrNewerFormat):
			return fmt.Errorf("%s: %w", s.name, err)
		}
		s.tailFault("%v", err)
		if id := binary.LittleEndian.Uint64(raw[24:]); known == 0 && s.confirmed(id) {
			known = id
		}
	} else {
		s.tailFault("footer: the file has %d bytes", len(s.data))
	}
	if known == 0 {
		return &base.CorruptionError{File: s.name, Offset: max(int64(len(s.data))-footerSize, 0),
			What: "footer: the file's id is lost, and without it no block can be checked"}
	}
	s.out.ID = known
	return nil
}

// idVotes is how many blocks must confirm the id in a damaged footer: if the file was cut off,
// bytes of entries are there. Even a file without entries has an index and properties.
const idVotes = 2

// confirmed reports whether the file's blocks confirm an id.
func (s *salvager) confirmed(id uint64) bool {
	s.out.ID = id
	votes := 0
	for pos := 0; pos < len(s.data); {
		b, ok := s.blockAt(pos, true)
		if !ok {
			b, ok = s.resume(pos)
		}
		if !ok {
			break
		}
		if _, err := blockindex.Decode(s.data[b.pos : b.end-trailerSize]); b.form != otherForm || err == nil {
			votes++
		}
		if votes == idVotes {
			s.ends.rewind()
			return true
		}
		pos = b.end
	}
	s.ends = nil
	return false
}

// walk goes from block to block, and over what is between them.
func (s *salvager) walk() error {
	for pos := 0; pos < s.limit; {
		b, ok := s.blockAt(pos, true)
		if !ok {
			next := s.limit
			if b, ok = s.resume(pos); ok {
				next = b.pos
			}
			s.gap(pos, next, "no block here checks out")
		}
		if !ok {
			return nil
		}
		if err := s.take(&b); err != nil {
			return err
		}
		pos = b.end
	}
	return nil
}

// take uses a block. Data blocks follow each other: what is between two of them is lost, whatever it was taken for.
func (s *salvager) take(b *foundBlock) error {
	s.largest = max(s.largest, b.end-b.pos)
	switch b.form {
	case dataForm:
		if b.pos > s.dataEnd {
			s.gap(s.dataEnd, b.pos, "the block here has no entries")
			first, _ := viewBlock(b.data).restartKey(0)
			s.closeGap(bytes.Clone(first.User))
		}
		s.out.Blocks++
		s.dataEnd = b.end
		return s.emit(b.data)
	case tombstonesForm:
		s.out.Tombstones = b.tombstones.Clip(nil, nil, nil)
	case propertiesForm:
		s.out.Properties = b.properties
	}
	return nil
}

func (s *salvager) emit(data []byte) error {
	var i blockIter
	i.reset(viewBlock(data))
	for ok := i.first(); ok; ok = i.next() {
		k := i.key()
		if s.seq != 0 {
			k.Trailer = base.MakeTrailer(s.seq, k.Kind())
		}
		if err := s.add(k, i.value()); err != nil {
			return err
		}
		s.out.Entries++
		s.last.Trailer = k.Trailer
	}
	s.last.User = append(s.last.User[:0], i.key().User...)
	return nil
}

// gap notes that no entries come from [from, to).
func (s *salvager) gap(from, to int, what string) {
	if s.pending == nil {
		s.pending = &Gap{Offset: int64(from), What: what}
		if s.out.Entries > 0 {
			s.pending.After = append([]byte{}, s.last.User...)
		}
	}
	s.pending.Offset = min(s.pending.Offset, int64(from))
	s.pending.Length = int64(to) - s.pending.Offset
}

func (s *salvager) closeGap(before []byte) {
	s.pending.Before = before
	s.out.Gaps = append(s.out.Gaps, *s.pending)
	s.pending = nil
}

// finish closes the last gap. What is missing after the data is no gap if the properties tell where the data ends.
func (s *salvager) finish() {
	p := s.out.Properties
	if p == nil {
		s.out.TombstonesLost = len(s.out.Tombstones) == 0
		s.gap(s.dataEnd, len(s.data), "how far the data went is not known")
	} else if s.pending == nil && s.dataEnd < int(p.DataBytes) && p.Entries > s.out.Entries {
		s.gap(s.dataEnd, int(p.DataBytes), "the file ends here")
	}
	if s.pending != nil {
		s.closeGap(nil)
	}
	if p == nil {
		return
	}
	var gaps []Gap
	for _, g := range s.out.Gaps {
		if g.Offset >= int64(p.DataBytes) {
			s.tailFault("%d bytes at offset %d: %s", g.Length, g.Offset, g.What)
			continue
		}
		if g.After == nil {
			g.After = p.Smallest
		}
		if g.Before == nil {
			g.Before = p.Largest
		}
		gaps = append(gaps, g)
	}
	s.out.Gaps = gaps
	if p.RangeDeletes > 0 && len(s.out.Tombstones) == 0 {
		s.out.TombstonesLost = true
	}
}

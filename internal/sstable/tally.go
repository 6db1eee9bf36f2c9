package sstable

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
)

// A tally is what the entries of a file add up to: its writer counts them, and Verify counts them again.
type tally struct {
	Properties
	expiries  expirySample
	separated expirySample // of separated values, by bytes
	keys      KeySample
	refs      refTally
	last      base.InternalKey // of the last entry
	covered   bool             // by a newer value or tombstone of its key
	stretch   uint64           // of keys up to the last one that are deleted
}

// DenseStretch is the number of consecutive deleted keys, without a live one of the file in between, that make a
// tombstone cluster. A scan over one takes several times as long as the search for its first key.
const DenseStretch = 100

// A Count counts entries as the writer of a file does, without writing one.
type Count struct{ t tally }

// NewCount returns the count of no entries.
func NewCount() *Count { return &Count{newTally()} }

// Add counts an entry, and reports whether it is under a newer value or tombstone of its key. Entries come in the order
// of a file.
func (c *Count) Add(k base.InternalKey, value []byte) (covered bool) {
	c.t.add(k, value, c.t.Entries > 0 && bytes.Equal(k.User, c.t.last.User))
	return c.t.covered
}

// Info returns what a file of these entries would say of them. The ids of blob files are left out.
func (c *Count) Info() *FileInfo {
	c.t.finish()
	c.t.Blobs = c.t.refs.sorted()
	return &FileInfo{Properties: c.t.Properties}
}

// Keys returns a sample of the keys that were added.
func (c *Count) Keys() *KeySample { return &c.t.keys }

func newTally() tally { return tally{Properties: Properties{SmallestSeq: base.MaxSeqNum}} }

// add counts an entry; again says that its user key is the last entry's.
func (t *tally) add(k base.InternalKey, value []byte, again bool) {
	if t.Entries == 0 {
		t.Smallest = append([]byte{}, k.User...)
	}
	t.Entries++
	record := uint64(0)
	switch k.Kind() {
	case base.KindDelete:
		t.Deletes++
	case base.KindMerge:
		t.Merges++
	case base.KindSetTTL:
		expiry, _, _ := base.CutExpiry(value)
		t.addExpiry(expiry)
	case base.KindSetSeparated, base.KindSetTTLSeparated:
		record = t.addSeparated(k.Kind(), value)
	}
	if t.covered = again && (t.covered || t.last.Kind() != base.KindMerge); t.covered {
		t.Overwritten++
		t.Droppable.Overwritten += record
	} else {
		t.addToStretch(k.Kind())
		t.keys.add(k)
	}
	t.RawKeyBytes += uint64(len(k.User))
	t.RawValueBytes += uint64(len(value))
	t.addSeq(k.SeqNum())
	t.last = base.InternalKey{User: append(t.last.User[:0], k.User...), Trailer: k.Trailer}
}

func (t *tally) addExpiry(expiry uint64) {
	t.Expiring++
	t.LastExpiry = max(t.LastExpiry, expiry)
	t.expiries.add(expiry, 1)
}

// addSeparated counts an entry with a handle, which is well-formed. It returns the bytes of the record.
func (t *tally) addSeparated(kind base.Kind, value []byte) (record uint64) {
	h, expiry, _ := blob.HandleOf(kind, value)
	record = uint64(h.Length)
	if kind.Expires() {
		t.addExpiry(expiry)
		t.Droppable.Expiring += record
		t.Droppable.LastExpiry = max(t.Droppable.LastExpiry, expiry)
		t.separated.add(expiry, record)
	}
	t.Separated++
	t.SeparatedBytes += uint64(h.Size)
	t.refs.add(h)
	return record
}

// addToStretch counts the newest entry of a key, or operands over it: what it hides does not end
// a stretch, since scans pass that too.
func (t *tally) addToStretch(kind base.Kind) {
	if kind != base.KindDelete {
		t.stretch = 0
		return
	}
	switch t.stretch++; {
	case t.stretch == DenseStretch:
		t.DenseDeletes += DenseStretch
	case t.stretch > DenseStretch:
		t.DenseDeletes++
	}
}

func (t *tally) addSeq(s base.SeqNum) {
	t.SmallestSeq, t.LargestSeq = min(t.SmallestSeq, s), max(t.LargestSeq, s)
}

// finish sets what is known when all entries are counted.
func (t *tally) finish() {
	t.ExpiryOctiles, t.Droppable.Octiles = t.expiries.octiles(), t.separated.octiles()
	if t.Entries > 0 {
		t.Largest = append([]byte{}, t.last.User...)
	}
}

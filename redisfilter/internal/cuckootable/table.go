package cuckootable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
)

var (
	// ErrFull is returned for a key for which its shard has no slot. The shard is as it was.
	ErrFull = errors.New("cuckootable: the shard is full")

	// ErrTooManyCopies is returned for a key that is there as often as its two buckets have slots.
	ErrTooManyCopies = errors.New("cuckootable: the shard holds this key as often as its two buckets have slots")

	// ErrLost is returned for a shard that is missing, too short, or not one of ours.
	ErrLost = errors.New("cuckootable: the shard is lost")

	// ErrForeign is the ErrLost of a value that another program put there.
	ErrForeign = fmt.Errorf("%w: another value is in its place", ErrLost)
)

// A Table is a shard in memory. It is for one goroutine at a time.
type Table struct {
	shape Shape
	shard []byte
	steps []step // scratch space of a search
}

// NewTable returns an empty table.
func (s Shape) NewTable() *Table { return &Table{shape: s, shard: s.Blank()} }

// Open returns a table over the bytes of a shard with a tag, which it keeps and changes. An error is ErrLost.
func (s Shape) Open(shard []byte, tag uint32) (*Table, error) {
	blank := s.Blank()
	switch {
	case len(shard) != len(blank):
		return nil, fmt.Errorf("%w: it has %d bytes instead of %d", ErrLost, len(shard), len(blank))
	case !bytes.Equal(shard[:headerSize], blank[:headerSize]) &&
		!bytes.Equal(shard[:headerSize], Tagged(blank, tag)[:headerSize]):
		return nil, fmt.Errorf("%w: its header is %q, not %q", ErrForeign, shard[:headerSize], blank[:headerSize])
	case !bytes.Equal(shard[s.markAt():], s.mark()):
		return nil, fmt.Errorf("%w: its mark is %q, not %q", ErrForeign, shard[s.markAt():], s.mark())
	}
	return &Table{shape: s, shard: shard}, nil
}

// Bytes returns the shard, as it may be stored in Redis. It changes with the table.
func (t *Table) Bytes() []byte { return t.shard }

// Copies returns how often the class of a key is there.
func (t *Table) Copies(p Place) int {
	return t.count(p.I, p.Fingerprint) + t.count(p.J, p.Fingerprint)
}

// Places yields the place of each slot in use, as often as its class is there. Its Shard is 0.
func (t *Table) Places() iter.Seq[Place] {
	return func(yield func(Place) bool) {
		for at := range t.shape.Buckets * slots {
			bucket, fingerprint := at/slots, t.at(at/slots, at%slots)
			if fingerprint == 0 {
				continue
			}
			if !yield(Place{Fingerprint: fingerprint, I: bucket, J: t.shape.other(fingerprint, bucket)}) {
				return
			}
		}
	}
}

// Add adds a key, or adds it once more. An error is ErrFull or ErrTooManyCopies, and leaves the table as it was.
func (t *Table) Add(p Place) error {
	switch {
	case t.put(p.I, p.Fingerprint) || t.put(p.J, p.Fingerprint):
		return nil
	case t.Copies(p) >= copies:
		return ErrTooManyCopies
	case t.makeRoom(p):
		return nil
	}
	return ErrFull
}

// Remove takes one copy of a key's class away and says whether there was one.
func (t *Table) Remove(p Place) bool {
	return t.replace(p.I, p.Fingerprint, 0) || t.replace(p.J, p.Fingerprint, 0)
}

func (t *Table) put(bucket, fingerprint uint32) bool { return t.replace(bucket, 0, fingerprint) }

// replace changes one slot of a bucket that holds old, or says false.
func (t *Table) replace(bucket, old, fingerprint uint32) bool {
	for slot := range uint32(slots) {
		if t.at(bucket, slot) == old {
			t.set(bucket, slot, fingerprint)
			return true
		}
	}
	return false
}

// count returns how often a bucket holds a fingerprint; 0 counts its empty slots.
func (t *Table) count(bucket, fingerprint uint32) (n int) {
	for slot := range uint32(slots) {
		if t.at(bucket, slot) == fingerprint {
			n++
		}
	}
	return n
}

func (t *Table) at(bucket, slot uint32) uint32 {
	window, shift := t.window(bucket, slot)
	return uint32(binary.BigEndian.Uint64(window) >> shift & t.shape.values())
}

func (t *Table) set(bucket, slot, fingerprint uint32) {
	window, shift := t.window(bucket, slot)
	x := binary.BigEndian.Uint64(window)&^(t.shape.values()<<shift) | uint64(fingerprint)<<shift
	binary.BigEndian.PutUint64(window, x)
}

// window returns the eight bytes in which a slot begins, and how far from their lower end it ends.
// The mark is behind the last slot, so there are always eight.
func (t *Table) window(bucket, slot uint32) (window []byte, shift uint32) {
	bit := (bucket*slots + slot) * t.shape.Bits
	return t.shard[headerSize+bit/8:][:8], 64 - t.shape.Bits - bit%8
}

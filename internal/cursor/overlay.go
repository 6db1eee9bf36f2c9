package cursor

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/readset"
)

// An Overlay adds a transaction's own writes to a cursor, and notes the keys that the cursor has passed over. The
// cursors of other readers have none: nil.
type Overlay struct {
	index       *memtable.Memtable // of own writes; nil: there are none
	tombs       *rangedel.History  // of index when the cursor was made
	first, last base.SeqNum        // of own writes in view: they are above all others
	reads       *readset.Tracker

	// span is what the cursor has passed over since its last seek: it looked for all of its keys.
	span  rangedel.Span
	open  bool // nothing is above the span
	empty bool // there is no span, or its lower end is still to come
	used  bool // by a cursor that is not closed
}

// Use prepares an Overlay for the next call of New. The index has the own writes, from number first to last; nil: there
// are none. Use reports false if a cursor uses o.
func (o *Overlay) Use(index *memtable.Memtable, first, last base.SeqNum, reads *readset.Tracker) bool {
	if o.used {
		return false
	}
	o.index, o.tombs, o.first, o.last, o.reads, o.empty = index, nil, first, last, reads, true
	if index != nil {
		o.tombs = index.Tombstones()
	}
	return true
}

// has reports whether a write is an own one that is in view.
func (o *Overlay) has(seq base.SeqNum) bool { return o != nil && seq >= o.first && seq <= o.last }

// from begins a span forward at key.
func (o *Overlay) from(key []byte) {
	if o == nil {
		return
	}
	o.Note()
	o.span.Lo, o.span.Hi = append(o.span.Lo[:0], key...), append(o.span.Hi[:0], key...)
	o.open, o.empty = false, false
}

// before begins a span backward below key, or from the last key there is if that is nil.
func (o *Overlay) before(key []byte) {
	if o == nil {
		return
	}
	o.Note()
	o.span.Hi = append(o.span.Hi[:0], key...)
	o.open = key == nil
}

// passed lengthens the span to the entry that a move has found, or else to the bound.
func (o *Overlay) passed(c *Cursor, found bool) {
	switch s := &o.span; {
	case c.backward:
		to := c.lower // nil: the smallest key there is
		if found {
			to = c.key
		}
		if o.empty || bytes.Compare(to, s.Lo) < 0 {
			s.Lo = append(s.Lo[:0], to...)
		}
		o.empty = false
	case o.open:
	case found && bytes.Compare(c.key, s.Hi) >= 0:
		s.Hi = append(append(s.Hi[:0], c.key...), 0) // the first key after it
	case !found && c.upper == nil:
		o.open = true
	case !found && bytes.Compare(c.upper, s.Hi) > 0:
		s.Hi = append(s.Hi[:0], c.upper...)
	}
}

// Note adds the span to what the transaction has read, and ends it.
func (o *Overlay) Note() {
	if o.empty {
		return
	}
	o.empty = true
	s := o.span
	if o.open {
		s.Hi = nil
	} else if s.Hi == nil {
		s.Hi = []byte{}
	}
	o.reads.AddSpan(s)
}

// close ends the use of o by a cursor.
func (o *Overlay) close() {
	if o == nil {
		return
	}
	o.Note()
	o.index, o.tombs, o.used = nil, nil, false
}

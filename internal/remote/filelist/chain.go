package filelist

import (
	"cmp"
	"slices"
)

// EditLimits say when a writer puts a list of files as an edit of the one before. The zero value has the defaults.
//
// An edit makes a publication small, and costs a request more when the list is read. A short list is always put whole,
// as a request with some KiB costs as much as one with some bytes.
type EditLimits struct {
	Percent int // of the bytes of a whole list, that the entries of its edits may have together. Default: 25
	Each    int // a whole list has one edit at most for this many of its bytes. Default: 16 KiB
	Max     int // edits of a whole list. Default: 256
}

// WithDefaults returns the limits with defaults in the place of zeros.
func (o EditLimits) WithDefaults() EditLimits {
	return EditLimits{Percent: cmp.Or(o.Percent, 25), Each: cmp.Or(o.Each, 16<<10), Max: cmp.Or(o.Max, 256)}
}

// A Chain is the newest list of files of a writer, and where it is.
type Chain struct {
	List  *List    // nil: the writer has put none, and the next one is put whole
	Slots []uint64 // of the whole list, and of the edits behind it
	whole int      // bytes of the whole list
	edits int      // bytes of the entries with the edits
}

// Slot returns where the list is; 0 if there is none.
func (c *Chain) Slot() uint64 {
	if len(c.Slots) == 0 {
		return 0
	}
	return c.Slots[len(c.Slots)-1]
}

// allows reports whether an edit with an entry of size bytes may follow.
func (c *Chain) allows(size int, o EditLimits) bool {
	return c.edits+size <= c.whole*o.Percent/100 && len(c.Slots) <= min(c.whole/o.Each, o.Max)
}

// Publish adds a list to the body for a slot, which has its chunks, as an edit unless the caller wants it whole. It
// returns the chain with that list.
func (c *Chain) Publish(b *Body, slot uint64, list *List, whole bool, o EditLimits) Chain {
	b.ListSlot = slot
	if e, ok := newEdit(c.List, list); ok && !whole {
		e.chain = c.Slots
		b.Edit = e.encode()
		if size := b.size(); c.allows(size, o) {
			return Chain{List: list, Slots: append(slices.Clip(c.Slots), slot), whole: c.whole,
				edits: c.edits + size}
		}
		b.Edit = nil
	}
	b.List = list.Encode()
	return Chain{List: list, Slots: []uint64{slot}, whole: len(b.List)}
}

package remote

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sequence"
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

func (o EditLimits) withDefaults() EditLimits {
	return EditLimits{Percent: cmp.Or(o.Percent, 25), Each: cmp.Or(o.Each, 16<<10), Max: cmp.Or(o.Max, 256)}
}

// A listChain is the newest list of files of a writer, and where it is.
type listChain struct {
	list  *fileList // nil: the writer has put none, and the next one is put whole
	slots []uint64  // of the whole list, and of the edits behind it
	whole int       // bytes of the whole list
	edits int       // bytes of the entries with the edits
}

// slot returns where the list is; 0 if there is none.
func (c *listChain) slot() uint64 {
	if len(c.slots) == 0 {
		return 0
	}
	return c.slots[len(c.slots)-1]
}

// allows reports whether an edit with an entry of size bytes may follow.
func (c *listChain) allows(size int, o EditLimits) bool {
	return c.edits+size <= c.whole*o.Percent/100 && len(c.slots) <= min(c.whole/o.Each, o.Max)
}

// publish adds a list to the body for a slot, which has its chunks, as an edit unless the caller wants it whole. It
// returns the chain with that list.
func (c *listChain) publish(b *body, slot uint64, list *fileList, whole bool, o EditLimits) listChain {
	b.lists = slot
	if e, ok := newListEdit(c.list, list); ok && !whole {
		e.chain = c.slots
		b.edit = e.encode()
		if size := b.size(); c.allows(size, o) {
			return listChain{list: list, slots: append(slices.Clip(c.slots), slot), whole: c.whole,
				edits: c.edits + size}
		}
		b.edit = nil
	}
	b.list = list.encode()
	return listChain{list: list, slots: []uint64{slot}, whole: len(b.list)}
}

// PublishWhole has the writer put later lists of files whole. The last list before the store is closed should be: then
// it is one object for the next opening.
func (f *FS) PublishWhole() {
	if w := f.asWriter(); w != nil {
		w.logs.whole.Store(true)
	}
}

// readList reads the list of files in the slot of a state, to which the newest entry leads. known may have an earlier
// list, with its files.
//
// If the list is an edit, it is a GET more for each entry of the chain behind the known list, side by side.
func readList(ctx context.Context, s *sequence.Sequence, v *sequence.TailView, st *state, newest slotBody,
	known mark) (err error) {
	last := newest
	if st.slot != newest.slot {
		if last, err = readBody(ctx, s, v, st.slot); err != nil {
			return err
		}
		if last.list == nil && last.edit == nil {
			return base.Corruptf(s.Key(newest.slot), sequence.HeaderSize, "slot %d has no list of files", st.slot)
		}
	}
	if last.edit != nil {
		e, err := decodeEdit(s, last)
		if err != nil {
			return err
		}
		slots := e.chain
		if at := slices.Index(slots, known.list); at >= 0 && known.files != nil {
			list := *known.files
			list.files = maps.Clone(list.files)
			st.list, st.chain, slots = &list, slots[:at+1:at+1], slots[at+1:]
		}
		if err := readChain(ctx, s, v, st, slots); err != nil {
			return err
		}
	}
	if err := addList(s, st, last); err != nil {
		return err
	}
	st.num, err = manifest.ParseCurrent(st.list.current)
	return err
}

// readChain reads the lists in some slots, each an edit of the one before, and brings a state from one to the next.
func readChain(ctx context.Context, s *sequence.Sequence, v *sequence.TailView, st *state, slots []uint64) error {
	for e, err := range s.DataIn(ctx, v, slots) {
		if err != nil {
			return err
		}
		b := slotBody{slot: e.Slot}
		if b.body, err = decodeBody(e.Body, e.Slot, s.Key(e.Slot)); err == nil {
			err = addList(s, st, b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addList brings a state to the list in an entry: that of the state is the one before.
func addList(s *sequence.Sequence, st *state, b slotBody) error {
	key := s.Key(b.slot)
	switch {
	case b.list != nil && len(st.chain) == 0:
		list, err := decodeList(s, b)
		if err != nil {
			return err
		}
		st.list, st.chain = list, []uint64{b.slot}
		return nil
	case b.edit == nil:
		return base.Corruptf(key, sequence.HeaderSize, "no edit of the list of files, which others need")
	}
	e, err := decodeEdit(s, b)
	if err != nil {
		return err
	}
	if !slices.Equal(e.chain, st.chain) {
		return base.Corruptf(key, sequence.HeaderSize, "an edit of the list of files in slots %d, not %d", e.chain,
			st.chain)
	}
	if err := e.apply(st.list); err != nil {
		return asListError(key, err)
	}
	st.chain = append(st.chain, b.slot)
	return nil
}

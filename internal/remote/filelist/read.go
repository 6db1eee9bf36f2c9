package filelist

import (
	"context"
	"maps"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/remote/locallog"
	"github.com/siftkv/siftkv/internal/sequence"
)

// ReadList reads the list of files to which the newest entry leads. have may have an earlier list, with its files.
//
// If the list is an edit, it is a GET more for each entry of the chain behind that list, side by side.
func ReadList(ctx context.Context, s *sequence.Sequence, v *sequence.TailView, newest SlotBody,
	have Known) (st *State, err error) {
	st = &State{Slot: newest.ListSlot}
	last := newest
	if st.Slot != newest.Slot {
		if last, err = ReadBody(ctx, s, v, st.Slot); err != nil {
			return nil, err
		}
		if last.List == nil && last.Edit == nil {
			return nil, base.Corruptf(s.Key(newest.Slot), sequence.HeaderSize, "slot %d has no list of files", st.Slot)
		}
	}
	if last.Edit != nil {
		e, err := editOf(s, last)
		if err != nil {
			return nil, err
		}
		slots := e.chain
		if at := slices.Index(slots, have.List); at >= 0 && have.Files != nil {
			list := *have.Files
			list.Files = maps.Clone(list.Files)
			st.List, st.Chain, slots = &list, slots[:at+1:at+1], slots[at+1:]
		}
		if err := readChain(ctx, s, v, st, slots); err != nil {
			return nil, err
		}
	}
	if err := addList(s, st, last); err != nil {
		return nil, err
	}
	st.ManifestNum, err = manifest.ParseCurrent(st.List.Current)
	return st, err
}

// readChain reads the lists in some slots, each an edit of the one before, and brings a state from one to the next.
func readChain(ctx context.Context, s *sequence.Sequence, v *sequence.TailView, st *State, slots []uint64) error {
	for e, err := range s.DataIn(ctx, v, slots) {
		if err != nil {
			return err
		}
		b := SlotBody{Slot: e.Slot}
		if b.Body, err = DecodeBody(e.Body, e.Slot, s.Key(e.Slot)); err == nil {
			err = addList(s, st, b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addList brings a state to the list in an entry: that of the state is the one before.
func addList(s *sequence.Sequence, st *State, b SlotBody) error {
	key := s.Key(b.Slot)
	switch {
	case b.List != nil && len(st.Chain) == 0:
		list, err := listOf(s, b)
		if err != nil {
			return err
		}
		st.List, st.Chain = list, []uint64{b.Slot}
		return nil
	case b.Edit == nil:
		return base.Corruptf(key, sequence.HeaderSize, "no edit of the list of files, which others need")
	}
	e, err := editOf(s, b)
	if err != nil {
		return err
	}
	if !slices.Equal(e.chain, st.Chain) {
		return base.Corruptf(key, sequence.HeaderSize, "an edit of the list of files in slots %d, not %d", e.chain,
			st.Chain)
	}
	if err := e.apply(st.List); err != nil {
		return Malformed(key, err)
	}
	st.Chain = append(st.Chain, b.Slot)
	return nil
}

// ReadLocation returns where the logs are, by the newest list of files in a view.
func ReadLocation(ctx context.Context, s *sequence.Sequence, v *sequence.TailView) (at locallog.Location, err error) {
	if v.Data == 0 {
		return at, nil
	}
	b, err := ReadBody(ctx, s, v, v.Data)
	if err == nil && b.List == nil && b.Edit == nil && b.ListSlot > 0 {
		b, err = ReadBody(ctx, s, v, b.ListSlot)
	}
	switch {
	case err != nil:
		return at, err
	case b.Edit != nil:
		e, err := editOf(s, b)
		return e.list.Location, err
	case b.List != nil:
		list, err := listOf(s, b)
		if err != nil {
			return at, err
		}
		return list.Location, nil
	}
	return at, nil // reading the rest tells what is wrong
}

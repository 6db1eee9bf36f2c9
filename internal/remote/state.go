package remote

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/siftkv/siftkv/internal/base"
)

// A state is what a sequence says of a store: the newest list of files, and the data since the first slot that its logs
// need, without what the caller had.
type state struct {
	list  *fileList // nil: there is none yet, or the caller has it
	num   uint64    // of the manifest in force
	slot  uint64    // of the list
	chain []uint64  // the slots that the list is read from, in ascending order

	span time.Duration // of the look

	// data yields what the logs need, in order, and an error last. Each body is fetched shortly before it is yielded,
	// and not kept. It is for one pass.
	data iter.Seq2[slotBody, error]

	// Known after that pass.
	first map[uint64]uint64 // of each log that is needed, the first slot that has bytes of it
	epoch uint64            // of the last entry; 0 if it is not known
}

// A slotBody is the body of the entry in a slot.
type slotBody struct {
	slot uint64
	body
}

// bodies yields those that are in memory.
func bodies(all ...slotBody) iter.Seq2[slotBody, error] {
	return func(yield func(slotBody, error) bool) {
		for _, b := range all {
			if !yield(b, nil) {
				return
			}
		}
	}
}

// state reads the list of files, and prepares reading the data up to the newest that the look shows. known is what the
// caller has read. If something is missing, the error, or that of data, matches objstore.ErrNotExist: it was trimmed,
// as there are newer entries, or is lost.
//
// It is one GET if the newest data is a whole list of files, as after a store was closed. Else it is one more for that
// list, and if that is an edit, one for each entry of its chain, in parallel. The data is one for each entry that the
// logs need, in parallel.
func (s *Sequence) state(ctx context.Context, l *Look, known mark) (*state, error) {
	st := &state{span: l.span, data: bodies(), first: map[uint64]uint64{}}
	if l.Data == 0 {
		return st, nil
	}
	newest, err := s.body(ctx, l, l.Data)
	if err != nil || newest.lists == 0 {
		return st, err
	}
	start := known.next
	if st.slot = newest.lists; st.slot != known.list {
		if err := s.readList(ctx, l, st, newest, known); err != nil {
			return nil, err
		}
		start = max(start, st.list.logStart)
	}
	st.data = func(yield func(slotBody, error) bool) {
		for e, err := range s.entries(ctx, l, max(start, 1), l.Data) {
			var b slotBody
			if err == nil {
				b, err = s.follow(st, e)
			}
			if err != nil || !e.Fence {
				if !yield(b, err) || err != nil {
					return
				}
			}
		}
	}
	return st, nil
}

// follow returns the body of the entry that comes next in a state; of a fence, none.
func (s *Sequence) follow(st *state, e Entry) (b slotBody, err error) {
	if err := s.follows(e, st.epoch); err != nil {
		return b, err
	}
	if st.epoch = e.Epoch; e.Fence {
		return b, nil
	}
	b.slot = e.Slot
	if b.body, err = decodeBody(e.Body, e.Slot, s.key(e.Slot)); err != nil {
		return b, err
	}
	for _, c := range b.chunks {
		if _, there := st.first[c.log]; !there && c.log >= st.oldest() {
			st.first[c.log] = e.Slot
		}
	}
	return b, nil
}

// gather fetches all data, and keeps it.
func (st *state) gather() error {
	var all []slotBody
	for b, err := range st.data {
		if err != nil {
			return err
		}
		all = append(all, b)
	}
	st.data = bodies(all...)
	return nil
}

// follows checks that an entry may come after one of an epoch.
func (s *Sequence) follows(e Entry, epoch uint64) error {
	if e.Epoch < epoch {
		return base.Corruptf(s.key(e.Slot), 40, "an entry of epoch %d after one of epoch %d: the store has let both "+
			"writers put", e.Epoch, epoch)
	}
	return nil
}

// body returns what the entry in a slot carries, which must be data.
func (s *Sequence) body(ctx context.Context, l *Look, slot uint64) (b slotBody, err error) {
	e, err := s.data(ctx, l, slot)
	if err != nil {
		return b, err
	}
	b.slot = slot
	b.body, err = decodeBody(e.Body, slot, s.key(slot))
	return b, err
}

// fileList decodes the whole list of files of an entry.
func (s *Sequence) fileList(b slotBody) (*fileList, error) {
	l, _, err := decodeFileList(b.list)
	if err == nil && l.logStart > b.slot {
		err = fmt.Errorf("%w: its logs begin in slot %d", errList, l.logStart)
	}
	if err != nil {
		return nil, asListError(s.key(b.slot), err)
	}
	return &l, nil
}

// asListError is the error of a list of files in the object with a key.
func asListError(key string, err error) error {
	if errors.Is(err, ErrNewerFormat) {
		return fmt.Errorf("%s: %w", key, err)
	}
	return &base.CorruptionError{File: key, Offset: -1, What: "the list of files", Cause: err}
}

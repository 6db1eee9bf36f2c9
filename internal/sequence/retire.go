package sequence

import (
	"context"
	"errors"

	"github.com/siftkv/siftkv/internal/base"
)

// Retire fences off the writer, and any later one, of a sequence that nothing opens any more. It puts a fence after the
// last entry, in the slot first or a later one, and calls remove, which must delete all data before the fence. It does
// so again if another writer came in between. Fences stay.
//
// A writer that was opening the sequence may put a fence after this one. It is the writer only if it then sees the
// newest data. So its fence is there before the last of the data is gone, and Retire sees it afterwards.
func (s *Sequence) Retire(ctx context.Context, first uint64, remove func(fence uint64) error) error {
	for {
		v, err := s.Tail(ctx)
		if IsMissing(err) { // a thousand fences follow data that is deleted already
			v, err = s.readLast(ctx)
		}
		if err != nil {
			return err
		}
		fence, err := s.FenceOff(ctx, v, first)
		if err == nil {
			err = remove(fence)
		}
		if err == nil {
			err = s.verify(ctx, Entry{Slot: fence, Epoch: fence})
		}
		if !errors.Is(err, ErrMoved) && !errors.Is(err, base.ErrFenced) {
			return err
		}
	}
}

// FenceOff puts a fence after what v shows, in the slot first if there is nothing before that. It returns the fence's
// slot.
func (s *Sequence) FenceOff(ctx context.Context, v *TailView, first uint64) (slot uint64, err error) {
	v.Last = max(v.Last, first-1)
	w, err := s.Fence(ctx, v, func(context.Context) error { return nil })
	if err != nil {
		return 0, err
	}
	return w.Epoch(), nil
}

package remote

import (
	"context"
	"iter"
	"sync"
)

// parallel is how many objects are fetched beside each other.
const parallel = 16

// entries yields what is in slots from first to last, in order, without the fences that the look shows. An error ends
// it; one that matches objstore.ErrNotExist says that a slot is missing: it was trimmed, or is lost.
//
// It is a GET for each entry that was not read yet, up to 16 beside each other.
func (s *Sequence) entries(ctx context.Context, l *Look, first, last uint64) iter.Seq2[Entry, error] {
	type answer struct {
		e   Entry
		err error
	}
	return func(yield func(Entry, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var all sync.WaitGroup
		defer all.Wait() // no request outlives the loop
		defer cancel()
		var asked [parallel]chan answer
		ask := func(slot uint64) {
			size, to := l.sizes[slot], make(chan answer, 1)
			asked[slot%parallel] = to
			e, read := l.read[slot]
			if read || size == fenceSize {
				to <- answer{e: e}
				return
			}
			if size == 0 {
				size = guess // it is not in the page
			}
			all.Go(func() {
				e, _, err := s.get(ctx, slot, size)
				to <- answer{e, err}
			})
		}
		next := first
		for slot := first; slot <= last; slot++ {
			for ; next <= last && next < slot+parallel; next++ {
				ask(next)
			}
			got := <-asked[slot%parallel]
			if got.err == nil && got.e.Slot == 0 {
				continue
			}
			if !yield(got.e, got.err) || got.err != nil {
				return
			}
		}
	}
}

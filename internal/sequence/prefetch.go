package sequence

import (
	"context"
	"iter"
	"sync"
)

// Entries are fetched side by side: up to maxParallel of them, which together have room for maxPrefetch bytes, or one.
const (
	maxParallel = 64
	maxPrefetch = 8 << 20
)

// Entries yields what is in slots from first to last, in order, without the fences that the view shows. An error ends
// it; one that matches objstore.ErrNotExist says that a slot is missing: it was trimmed, or is lost.
//
// It is a GET for each entry that was not read yet. What was yielded is not kept.
func (s *Sequence) Entries(ctx context.Context, v *TailView, first, last uint64) iter.Seq2[Entry, error] {
	return s.entriesIn(ctx, v, max(last+1, first)-first, func(i uint64) uint64 { return first + i })
}

// DataIn yields the data in some slots, which ascend. If a fence is in one, the data was trimmed: the error is that of
// a missing object.
func (s *Sequence) DataIn(ctx context.Context, v *TailView, slots []uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		next := 0
		for e, err := range s.entriesIn(ctx, v, uint64(len(slots)), func(i uint64) uint64 { return slots[i] }) {
			if err == nil && (e.Fence || e.Slot != slots[next]) {
				break
			}
			if !yield(e, err) || err != nil {
				return
			}
			next++
		}
		if next < len(slots) {
			yield(Entry{}, s.fenced(slots[next]))
		}
	}
}

// entriesIn is entries for n slots, which slot returns in ascending order.
func (s *Sequence) entriesIn(ctx context.Context, v *TailView, n uint64,
	slot func(i uint64) uint64) iter.Seq2[Entry, error] {
	type answer struct {
		e   Entry
		err error
	}
	return func(yield func(Entry, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var all sync.WaitGroup
		defer all.Wait() // no request outlives the loop
		defer cancel()
		var asked [maxParallel]chan answer
		var sizes [maxParallel]int // that were made room for
		ahead := 0                 // bytes in all
		ask := func(i, slot uint64, size int) {
			to := make(chan answer, 1)
			asked[i%maxParallel], sizes[i%maxParallel] = to, size
			ahead += size
			e, read := v.read[slot]
			if read || size == FenceSize {
				to <- answer{e: e}
				return
			}
			all.Go(func() {
				e, _, err := s.get(ctx, slot, size)
				to <- answer{e, err}
			})
		}
		next := uint64(0)
		for i := range n {
			for ; next < n && next < i+maxParallel; next++ {
				size := v.sizeOf(slot(next))
				if next > i && ahead+size > maxPrefetch {
					break
				}
				ask(next, slot(next), size)
			}
			got := <-asked[i%maxParallel]
			ahead -= sizes[i%maxParallel]
			if got.err == nil && got.e.Slot == 0 {
				continue
			}
			if !yield(got.e, got.err) || got.err != nil {
				return
			}
		}
	}
}

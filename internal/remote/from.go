package remote

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/siftkv/siftkv/internal/base"
)

// parallel is how many objects are fetched beside each other.
const parallel = 16

// From yields all entries from a slot on, fences too, in order, to the end: beyond what a listing shows it goes on
// until a slot is free. An error ends it. One that matches base.ErrCorruption and objstore.ErrNotExist says that a
// slot is missing before others that are there: it was trimmed, or is lost.
//
// It is a LIST of the entries asked for, a thousand to a request; a GET for each entry, up to 16 beside each other; and
// one for the slot after the last.
func (s *Sequence) From(ctx context.Context, slot uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		sizes, last, err := s.listFrom(ctx, slot)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		next := slot
		for e, err := range s.fetchAll(ctx, slot, last, sizes) {
			if !yield(e, err) || err != nil {
				return
			}
			next = e.Slot + 1
		}
		for ; ; next++ {
			e, err := s.Get(ctx, next)
			if isMissing(err) || !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// listFrom returns the sizes of what a listing shows from a slot on, and the last slot, or the one before if there
// is none.
func (s *Sequence) listFrom(ctx context.Context, slot uint64) (sizes map[uint64]int, last uint64, err error) {
	sizes, last = map[uint64]int{}, slot-1
	for o, err := range s.store.List(ctx, s.prefix, "") {
		if err != nil {
			return nil, 0, fmt.Errorf("siftkv: list %s: %w", s.prefix, err)
		}
		at, ok := s.slotOf(o.Key)
		if ok && at < slot {
			break
		}
		if ok {
			sizes[at] = int(min(o.Size, maxSize))
			last = max(last, at)
		}
	}
	return sizes, last, nil
}

// fetchAll yields the entries in slots from first to last.
func (s *Sequence) fetchAll(ctx context.Context, first, last uint64, sizes map[uint64]int) iter.Seq2[Entry, error] {
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
		next := first
		ask := func() {
			slot, size, to := next, sizes[next], make(chan answer, 1)
			if size == 0 {
				size = guess // a listing that lags leaves it out
			}
			asked[slot%parallel] = to
			next++
			all.Go(func() {
				e, _, err := s.get(ctx, slot, size)
				to <- answer{e, err}
			})
		}
		for slot := first; slot <= last; slot++ {
			for next <= last && next < slot+parallel {
				ask()
			}
			got := <-asked[slot%parallel]
			if isMissing(got.err) {
				got.err = &base.CorruptionError{File: s.key(slot), Offset: -1, Cause: got.err,
					What: fmt.Sprintf("the object is missing, and there are later ones, up to slot %d", last)}
			}
			if !yield(got.e, got.err) || got.err != nil {
				return
			}
		}
	}
}

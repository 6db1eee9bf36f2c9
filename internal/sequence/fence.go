package sequence

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/objstore"
)

// Fence puts a fence into the first free slot after the end in v, so that earlier writers can put nothing any more, and
// returns the new writer. It adds the entries that it finds to v. Of several concurrent callers, the last is the
// writer. Parallel to its last requests it calls read, which must read the newest data at least: that tells which store
// it is.
//
// The error matches ErrMoved if entries after the end had been trimmed meanwhile: the caller reads the tail again. It
// matches objstore.ErrUnconditional if the store ignores conditions. After other errors the fence may be there or not,
// or appear later, which does no harm.
//
// It is a PUT, and a PUT and a GET more for each entry found. Then, in parallel: a LIST, to see that the slot had not
// been trimmed; a PUT, to see that the store honours conditions; and a GET if a thousand fences follow the newest data.
func (s *Sequence) Fence(ctx context.Context, v *TailView, read func(ctx context.Context) error) (*Writer, error) {
	fence := Entry{Fence: true}
	_, _ = rand.Read(fence.nonce[:]) // never fails
	for {
		fence.Slot, fence.newest = v.Last+1, v.Data
		fence.Epoch = fence.Slot
		if fence.Slot >= endOfSlots {
			return nil, fmt.Errorf("siftkv: %s has no free slot after %d", s.prefix, v.Last)
		}
		other, own, err := s.create(ctx, fence.Slot, s.Encode(fence))
		if err != nil {
			return nil, err
		}
		if own {
			break
		}
		v.add(other)
	}
	if err := s.finish(ctx, fence, read); err != nil {
		return nil, err
	}
	if s.id.Load() == 0 {
		s.id.CompareAndSwap(0, RandomID()) // there is no data, and this writer's will be the first
	}
	return newWriter(s, fence), nil
}

// finish verifies a fence that was put, checks conditions and calls read, in parallel.
//
// It returns ErrUnconditional only if the fence is at the end. In a slot that had been trimmed, a delayed request to
// delete the data may have deleted the fence.
func (s *Sequence) finish(outer context.Context, fence Entry, read func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	var all sync.WaitGroup
	var moved, ignored, failed error
	all.Go(func() {
		if moved = s.verify(ctx, fence); moved != nil {
			cancel()
		}
	})
	all.Go(func() {
		if ignored = s.checkConditions(ctx, fence); ignored != nil {
			cancel()
		}
	})
	all.Go(func() { failed = read(ctx) })
	all.Wait()
	unconditional := errors.Is(ignored, objstore.ErrUnconditional)
	if unconditional && (moved == nil || errors.Is(moved, context.Canceled)) {
		moved = s.verify(outer, fence)
	}
	switch {
	case unconditional:
		return cmp.Or(moved, ignored)
	case moved != nil && (ignored == nil || !errors.Is(moved, context.Canceled)):
		return moved
	case ignored != nil:
		return ignored
	case IsMissing(failed) || errors.Is(failed, base.ErrCorruption):
		// The newest data is complete, unless another writer has taken over since and continued.
		if err := s.verify(outer, fence); err != nil {
			return err
		}
		return AsCorruption(failed)
	}
	return failed
}

// verify makes sure that a fence that was just put is at the end. If the writer stalled after it found the end, the
// slot may be free because its data was put and deleted meanwhile. Data is deleted only after newer data was put, so a
// listing that begins now shows that. Only a drop of the branch deletes all data: so the newest data that was seen must
// still be there. It is a LIST, and a GET if a thousand fences follow that data, or the listing lags.
func (s *Sequence) verify(ctx context.Context, fence Entry) error {
	listed, there := 0, fence.newest == 0
	for o, err := range s.store.List(ctx, s.prefix, "") {
		if err != nil {
			return fmt.Errorf("siftkv: list %s: %w", s.prefix, err)
		}
		slot, ok := s.SlotOf(o.Key)
		if ok && slot > fence.Slot {
			return s.passed(ctx, fence, slot, int(min(o.Size, maxSize)))
		}
		there = there || ok && slot == fence.newest
		if listed++; there || listed == pageSize {
			break
		}
	}
	if there {
		return nil
	}
	_, _, err := s.get(ctx, fence.newest, guess)
	if IsMissing(err) {
		err = ErrMoved
	}
	return err
}

// passed returns why a fence is not the end: there is a later entry.
func (s *Sequence) passed(ctx context.Context, fence Entry, last uint64, size int) error {
	e, _, err := s.get(ctx, last, size)
	if err == nil && e.Epoch > fence.Epoch {
		return &FencedError{Key: s.Key(last), Own: fence.Epoch, Epoch: e.Epoch}
	}
	if err == nil || IsMissing(err) {
		err = ErrMoved
	}
	return err
}

// checkConditions makes sure that a second fence cannot be put where one is. Its nonce is another: a client that
// repeats a request whose reply was lost, and finds what it has sent, may take that for its success.
func (s *Sequence) checkConditions(ctx context.Context, fence Entry) error {
	_, _ = rand.Read(fence.nonce[:]) // never fails
	object := s.Encode(fence)
	for tries := 0; ; tries++ {
		err := s.store.PutIfAbsent(ctx, s.Key(fence.Slot), object)
		switch {
		case err == nil:
			return fmt.Errorf("siftkv: %w (%q was there, and was replaced)", objstore.ErrUnconditional,
				s.Key(fence.Slot))
		case errors.Is(err, objstore.ErrExists):
			return nil
		case !errors.Is(err, objstore.ErrUnknown) && !errors.Is(err, objstore.ErrThrottled), !s.Wait(ctx, tries):
			return fmt.Errorf("siftkv: put slot %d again: %w", fence.Slot, err)
		}
	}
}

// AsCorruption is the error of an object that is missing although it is needed.
func AsCorruption(err error) error {
	if failed, ok := errors.AsType[*objstore.Error](err); ok {
		return &base.CorruptionError{File: failed.Key, Offset: -1, Cause: err,
			What: "the object is missing, and later ones need it"}
	}
	return err
}

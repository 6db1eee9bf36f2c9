package remote

import (
	"context"
	"crypto/rand"
	"errors"
)

// Open makes the caller the sequence's writer, with an epoch higher than all before, and returns the newest data,
// whose Slot is 0 if there is none: what the writers before have put, all of it, as none of them puts anything from
// now on.
//
// It is Newest and Fence, again if need be: three or four requests beside the PUT, in turn.
func (s *Sequence) Open(ctx context.Context) (*Writer, Entry, error) {
	for {
		end, err := s.Newest(ctx)
		if err != nil {
			return nil, Entry{}, err
		}
		w, found, err := s.Fence(ctx, end, 0)
		if errors.Is(err, ErrMoved) {
			continue
		}
		if err != nil {
			return nil, Entry{}, err
		}
		if len(found) > 0 {
			return w, found[len(found)-1], nil
		}
		return w, end.Data, nil
	}
}

// Fence puts a fence into the first free slot after what the caller knows, so that who was writing puts nothing any
// more, and returns who may put now. It returns the data that it found on its way, in order.
//
// With epoch 0, the new writer's is higher than all that there are, and the last of several who do so at once is the
// writer. Else it is the one that is given, and the error matches ErrFenced if there is one as high. It matches
// ErrMoved if entries after the end had been trimmed meanwhile: the caller looks the end up again. After other errors
// the fence may be there or not, or appear later, which harms nobody.
//
// It is a PUT and, to see that the slot was not one that had been trimmed, a LIST; a PUT and a GET more for each
// entry found.
func (s *Sequence) Fence(ctx context.Context, end End, epoch uint64) (w *Writer, found []Entry, err error) {
	fence := Entry{Fence: true, store: s.id.Load(), newest: end.Data.Slot}
	_, _ = rand.Read(fence.nonce[:]) // never fails
	if fence.store == 0 {
		fence.store = randomStore()
	}
	high := end.Epoch
	for slot := end.Last + 1; ; slot++ {
		if epoch != 0 && high >= epoch {
			return nil, nil, &FencedError{Key: s.key(slot - 1), Own: epoch, Epoch: high}
		}
		fence.Slot, fence.Epoch = slot, epoch
		if epoch == 0 {
			fence.Epoch = high + 1
		}
		other, own, err := s.create(ctx, slot, fence.encode(s.tag))
		if err != nil {
			return nil, nil, err
		}
		if own {
			break
		}
		fence.store, high = other.store, max(high, other.Epoch)
		if !other.Fence {
			fence.newest = slot
			found = append(found, other)
		}
	}
	if !s.id.CompareAndSwap(0, fence.store) && s.id.Load() != fence.store {
		return nil, nil, ErrMoved // another caller has opened the sequence, when it was empty
	}
	if err := s.verify(ctx, fence); err != nil {
		return nil, nil, err
	}
	return newWriter(s, fence), found, nil
}

// verify makes sure that a fence that was just put stands at the end. Whoever looks for the end and stalls may find a
// slot free because its data was put and deleted meanwhile. As data is deleted only when newer data is there, a
// listing that begins now shows something newer then.
func (s *Sequence) verify(ctx context.Context, fence Entry) error {
	last, size, err := s.top(ctx)
	if err != nil || last <= fence.Slot {
		return err
	}
	e, _, err := s.get(ctx, last, size)
	if isMissing(err) {
		return ErrMoved
	}
	if err == nil && e.Epoch >= fence.Epoch {
		return &FencedError{Key: s.key(last), Own: fence.Epoch, Epoch: e.Epoch}
	}
	if err == nil {
		err = ErrMoved
	}
	return err
}

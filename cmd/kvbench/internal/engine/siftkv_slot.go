package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/kv"
)

const (
	slotName     = "kvbench"
	slotAckEvery = time.Second // as siftkv changes and siftkv follow do
	slotPatience = time.Minute // for changes that do not come
	slotPause    = time.Millisecond
)

// A slottedStore has a slot, whose consumer takes each commit while the next are made.
type slottedStore struct {
	*siftkvStore
	slot  *kv.Slot
	at    atomic.Uint64 // the last write that the consumer has
	seen  atomic.Uint64 // writes of the changes that it had, since the store was opened
	end   context.CancelFunc
	ended chan struct{}
	err   error // of the consumer, once it has ended
}

// openSiftKVSlot is openSiftKV with a slot, which the store has from its first write on.
func openSiftKVSlot(dir string, s Settings) (Live, error) {
	live, err := openSiftKV(dir, s)
	if err != nil {
		return nil, err
	}
	store := &slottedStore{siftkvStore: live.(*siftkvStore), ended: make(chan struct{})}
	if store.slot, err = slotOf(store.db); err != nil {
		return nil, fmt.Errorf("siftkv: %w", errors.Join(err, live.Close()))
	}
	store.at.Store(store.slot.Position())
	ctx, cancel := context.WithCancel(context.Background())
	store.end = cancel
	go func() {
		defer close(store.ended)
		store.err = store.consume(ctx)
	}()
	return store, nil
}

// slotOf opens the slot of a store, or makes it.
func slotOf(db *kv.DB) (*kv.Slot, error) {
	slot, err := db.OpenSlot(slotName)
	if !errors.Is(err, fs.ErrNotExist) {
		return slot, err
	}
	slot, snapshot, err := db.CreateSlot(context.Background(), slotName)
	if err != nil {
		return nil, err
	}
	return slot, snapshot.Close()
}

// consume takes changes until ctx ends, and acknowledges them now and then.
func (s *slottedStore) consume(ctx context.Context) error {
	due := time.Now().Add(slotAckEvery)
	for change, err := range s.slot.Changes(ctx) {
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		s.seen.Add(change.Last() - change.First() + 1)
		s.at.Store(change.Last())
		if now := time.Now(); now.After(due) {
			if err := s.slot.Ack(change.Last()); err != nil {
				return err
			}
			due = now.Add(slotAckEvery)
		}
	}
	return nil
}

// Settle has what the consumer has to do in its time.
func (s *slottedStore) Settle(ctx context.Context) error {
	if err := s.siftkvStore.Settle(ctx); err != nil {
		return err
	}
	return s.caughtUp(ctx)
}

// caughtUp waits until the consumer has the last write. It must have had as many as were made.
func (s *slottedStore) caughtUp(ctx context.Context) error {
	state := s.db.Slots()[0] // it is the only one
	last := state.Acked + state.Behind
	waiting, cancel := context.WithTimeout(ctx, slotPatience)
	defer cancel()
	late := until(waiting, slotPause, func() bool {
		select {
		case <-s.ended:
			return true
		default:
			return s.at.Load() >= last
		}
	})
	switch made, seen := s.db.Metrics().Writes, s.seen.Load(); {
	case ctx.Err() != nil:
		return ctx.Err()
	case late == nil && s.at.Load() < last:
		return failed("siftkv: changes", s.err)
	case seen != made:
		return fmt.Errorf("siftkv: %w: of %d writes, up to number %d, the slot's consumer has had %d, up to number %d",
			bench.ErrWrongAnswer, made, last, seen, s.at.Load())
	}
	return nil
}

// Close fails if the consumer has missed a write, or had one twice.
func (s *slottedStore) Close() error {
	err := s.caughtUp(context.Background())
	s.end()
	<-s.ended
	if err == nil {
		err = failed("siftkv: acknowledge", cmp.Or(s.err, s.slot.Ack(s.at.Load())))
	}
	return errors.Join(err, s.slot.Close(), s.siftkvStore.Close())
}

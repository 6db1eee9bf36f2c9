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
	first uint64        // write since the store was opened
	at    atomic.Uint64 // the last write that the consumer has
	seen  atomic.Uint64 // writes that it had, from the first on
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
	store, err := withSlot(live.(*siftkvStore))
	if err != nil {
		return nil, fmt.Errorf("siftkv: %w", errors.Join(err, live.Close()))
	}
	return store, nil
}

// withSlot has a consumer take the changes of a store.
func withSlot(s *siftkvStore) (*slottedStore, error) {
	slot, err := slotOf(s.db)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	store := &slottedStore{siftkvStore: s, slot: slot, first: lastWrite(s.db) + 1, end: cancel,
		ended: make(chan struct{})}
	store.at.Store(slot.Position())
	go func() {
		defer close(store.ended)
		store.err = store.consume(ctx)
	}()
	return store, nil
}

// lastWrite returns the number of the last write of a store with a slot that is not lost.
func lastWrite(db *kv.DB) uint64 {
	state := db.Slots()[0] // it is the only one
	return state.Acked + state.Behind
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
		if change.First() >= s.first { // others were not acknowledged before
			s.seen.Add(change.Last() - change.First() + 1)
		}
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

// Settle waits for the consumer too: what it has to do is part of the time.
func (s *slottedStore) Settle(ctx context.Context) error {
	if err := s.siftkvStore.Settle(ctx); err != nil {
		return err
	}
	return s.caughtUp(ctx)
}

// caughtUp waits until the consumer has the last write. It must have had as many as were made.
func (s *slottedStore) caughtUp(ctx context.Context) error {
	if why := s.db.Slots()[0].Lost; why != "" {
		return fmt.Errorf("siftkv: %w: %s", kv.ErrSlotLost, why)
	}
	last := lastWrite(s.db)
	waiting, cancel := context.WithTimeout(ctx, slotPatience)
	defer cancel()
	ended := false
	late := until(waiting, slotPause, func() bool {
		select {
		case <-s.ended:
			ended = true
		default:
		}
		return ended || s.at.Load() >= last
	})
	switch made, seen := s.db.Metrics().Writes, s.seen.Load(); {
	case ctx.Err() != nil:
		return ctx.Err()
	case ended && s.err != nil:
		return failed("siftkv: changes", s.err)
	case late != nil:
		return fmt.Errorf("siftkv: the slot's consumer has the writes up to %d of %d after %v", s.at.Load(), last,
			slotPatience)
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

package objects

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// A far is a store in an object store, and the consumer of its slot on another machine.
type far struct {
	*followed
	view    *kv.DB
	replica storetest.Model
}

// newFar makes a store with a slot that its process has closed.
func newFar(t *testing.T, seed uint64, s objstore.Store) *far {
	f := &far{followed: newFollowed(t, seed)}
	require.NoError(t, f.open(s))
	slot, snap, err := f.db.CreateSlot(t.Context(), followedSlot)
	require.NoError(t, errors.Join(err, snap.Close(), slot.Close()))
	return f
}

// lead has another writer take the store over.
func (f *far) lead(s objstore.Store) error {
	db, err := kv.Open("", objectsOptions(f.rng, s))
	if err != nil {
		return err
	}
	f.t.Cleanup(func() { _ = db.Close() })
	f.db = db
	count, err := db.Get([]byte("count"))
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	n, _ := strconv.Atoi(string(count))
	require.GreaterOrEqual(f.t, n, f.synced, "acknowledged writes are lost")
	require.GreaterOrEqual(f.t, n, f.n, "the consumer has what the store has lost")
	f.states = f.states[:n+1]
	return nil
}

// consume opens the slot on another machine, where a consumer before may have had it.
func (f *far) consume(s objstore.Store) error {
	bucket := &objects.Config{Store: s, Patience: time.Millisecond}
	view, err := kv.OpenReadOnly("", &kv.Options{Objects: bucket, PollInterval: time.Millisecond})
	if err != nil {
		return err
	}
	f.t.Cleanup(func() { _ = view.Close() })
	slot, err := view.OpenSlot(followedSlot)
	if err != nil {
		return err
	}
	require.GreaterOrEqual(f.t, slot.Position(), f.acked, "an acknowledgement is lost")
	f.view, f.slot = view, slot
	return slot.Skip(f.position)
}

// takeAll takes all changes, which are durable: after each the replica is what the store was.
func (f *far) takeAll() error {
	if f.replica == nil {
		f.replica = storetest.Model{}
	}
	if f.n == len(f.states)-1 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	for c, err := range f.slot.Changes(ctx) {
		if err != nil {
			return err
		}
		if c.Empty() {
			continue
		}
		next := maps.Clone(f.replica)
		if err := c.Replay(storetest.ModelWriter{Model: next}); err != nil {
			return err
		}
		f.replica, f.n, f.position = next, f.n+1, c.Last()
		require.Equal(f.t, f.states[f.n], f.replica, "after the change up to %d", f.position)
		if err := f.slot.Skip(f.position); err != nil {
			return err
		}
		if f.n == len(f.states)-1 {
			break
		}
	}
	return nil
}

// act does something at random.
func (f *far) act(s func() objstore.Store) error {
	switch n := f.rng.IntN(30); n {
	case 0, 1, 2, 3:
		if err := f.db.Flush(f.t.Context()); err != nil {
			return err
		}
		f.synced = len(f.states) - 1
		if n > 1 {
			return f.takeAll()
		}
	case 4:
		return f.db.Compact(f.t.Context(), nil, nil)
	case 5, 6:
		return f.ingest()
	case 7, 8, 9:
		if err := f.slot.Ack(f.slot.Position()); err != nil {
			return err
		}
		f.acked = f.slot.Position()
	case 10: // the consumer is killed, and may have changes that it has not acknowledged
		before := f.slot
		if err := f.consume(s()); err != nil {
			return err
		}
		if at := before.Position(); at > f.acked {
			require.ErrorIs(f.t, before.Ack(at), objects.ErrFenced)
		}
	case 11:
		if f.rng.IntN(2) == 0 {
			_ = f.db.Close()
		}
		return f.lead(s())
	default:
		return f.write()
	}
	return nil
}

// end requires that the consumer gets the rest, and that the writer gives up what it has acknowledged.
func (f *far) end(s objstore.Store) {
	f.t.Helper()
	require.NoError(f.t, errors.Join(f.lead(s), f.consume(s), f.db.Flush(f.t.Context()), f.takeAll()))
	require.NoError(f.t, f.slot.Ack(f.slot.Position()))
	require.NoError(f.t, errors.Join(f.db.Set([]byte("last"), nil, kv.Sync), f.db.Flush(f.t.Context())))
	require.Equal(f.t, f.position, f.db.Slots()[0].Acked)
	own, err := f.db.OpenSlot(followedSlot)
	require.NoError(f.t, err)
	require.Equal(f.t, f.position, own.Position())
	require.NoError(f.t, errors.Join(f.view.Close(), own.Close(), f.db.DropSlot(followedSlot)))
	_, err = f.db.OpenSlot(followedSlot)
	require.ErrorIs(f.t, err, iofs.ErrNotExist)
	require.NoError(f.t, f.db.Close())
}

// A consumer on another machine has each commit once and in order, whatever the network does, and also after another
// process has become the writer. Consumers take the slot over from each other.
func TestAConsumerOnAnotherMachine(t *testing.T) {
	t.Parallel()
	rules := maps.Clone(storeFaults)
	rules["none"] = func(objstoretest.Call) (none objstoretest.Fault) { return none }
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(scale.Count(2, 20)) {
				s := newObjectsStore(t)
				f, late := newFar(t, seed, s), []func(){}
				clients := func() objstore.Store { // those that are fenced have requests of their own
					faults := objstoretest.NewFaults(s, seed*100+uint64(len(late)))
					faults.Inject(rule)
					late = append(late, func() { faults.Deliver() })
					return faults
				}
				require.NoError(t, f.consume(clients()))
				for i := range scale.Count(200, 500) {
					require.NoError(t, f.act(clients), fmt.Sprint("seed ", seed, ", action ", i))
				}
				for _, deliver := range late {
					deliver()
				}
				f.end(s)
			}
		})
	}
}

// A process that dies at any of its requests, whether that is still performed or not, is followed by one that has each
// acknowledgement, and each change after it.
func TestDeathOfAConsumerOnAnotherMachine(t *testing.T) {
	t.Parallel()
	for _, outcome := range []objstoretest.Outcome{objstoretest.NotPerformed, objstoretest.LostReply} {
		for nth := int64(1); ; nth++ {
			s := objstore.NewMem()
			f := newFar(t, uint64(nth), s)
			for range 5 {
				require.NoError(t, errors.Join(f.write(), f.db.Flush(t.Context())))
			}
			faults := deadFrom(s, nth, outcome)
			err := f.consume(faults)
			if err == nil {
				err = f.takeAll()
			}
			for i := 0; i < 3 && err == nil; i++ {
				if err = f.slot.Ack(uint64(i + 1)); err == nil {
					f.acked = uint64(i + 1)
				}
			}
			f.end(s)
			if faults.Calls() < nth {
				require.NoError(t, err)
				require.Greater(t, nth, int64(15))
				break
			}
		}
	}
}

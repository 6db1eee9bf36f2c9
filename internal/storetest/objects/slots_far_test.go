package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"strconv"
	"testing"
	"testing/synctest"
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

// Of two consumers of a slot the newest has it, be they on other machines or one in the writer's process.
func TestTheNewestConsumerHasASlot(t *testing.T) {
	t.Parallel()
	s := objstore.NewMem()
	f := newFar(t, 1, s)
	require.NoError(t, f.db.Close())
	f.db = openObjects(t, s, nil) // which deletes no list of files before readers have had time to notice
	for range 6 {
		require.NoError(t, errors.Join(f.write(), f.db.Flush(t.Context())))
	}
	changes := func(slot *kv.Slot) []uint64 {
		var all []uint64
		for c, err := range slot.Changes(t.Context()) {
			require.NoError(t, err)
			if all = append(all, c.Last()); c.Last() == f.db.Slots()[0].Acked+f.db.Slots()[0].Behind {
				break
			}
		}
		return all
	}
	require.NoError(t, f.consume(s))
	first := f.slot
	all := changes(first)
	require.NoError(t, first.Ack(all[0]))
	require.NoError(t, f.consume(s))
	second := f.slot
	require.Equal(t, all[0], second.Position())
	require.Equal(t, all[1:], changes(second))
	require.ErrorIs(t, first.Ack(all[5]), objects.ErrFenced)
	for _, err := range first.Changes(t.Context()) {
		require.ErrorIs(t, err, objects.ErrFenced)
	}
	require.NoError(t, second.Ack(all[1]))

	own, err := f.db.OpenSlot(followedSlot)
	require.NoError(t, err)
	require.Equal(t, all[1], own.Position())
	require.ErrorIs(t, second.Ack(all[2]), objects.ErrFenced)
	require.Equal(t, all[2:], changes(own))

	require.NoError(t, f.consume(s)) // it should have waited until the slot is closed
	third := f.slot
	require.Equal(t, all[2:], changes(third))
	require.NoError(t, own.Ack(all[3]))
	require.ErrorIs(t, third.Ack(all[2]), objects.ErrFenced)
	require.NoError(t, own.Close())
	require.NoError(t, f.consume(s))
	require.Equal(t, all[3], f.slot.Position())
}

// A consumer on another machine learns that its slot was dropped, or is lost, and no slot of its name takes it over.
func TestASlotOnAnotherMachineEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(f *far) error{
		"dropped": func(f *far) error { return f.db.DropSlot(followedSlot) },
		"another": func(f *far) error {
			err := f.db.DropSlot(followedSlot)
			slot, snap, failed := f.db.CreateSlot(t.Context(), followedSlot)
			return errors.Join(err, failed, snap.Close(), slot.Close())
		},
		"another of the same history": func(f *far) error {
			keep, snap, err := f.db.CreateSlot(t.Context(), "keep")
			err = errors.Join(err, snap.Close(), keep.Close(), f.db.DropSlot(followedSlot))
			slot, snap, failed := f.db.CreateSlot(t.Context(), followedSlot)
			return errors.Join(err, failed, snap.Close(), slot.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := objstore.NewMem()
			f := newFar(t, 1, s)
			require.NoError(t, errors.Join(f.write(), f.write(), f.db.Flush(t.Context()), f.consume(s), f.takeAll()))
			require.NoError(t, f.slot.Ack(f.position-1))
			require.NoError(t, errors.Join(f.write(), f.write(), f.db.Flush(t.Context())))
			require.NoError(t, end(f))
			ended := func(err error) bool {
				return errors.Is(err, iofs.ErrNotExist) || errors.Is(err, kv.ErrSlotLost) ||
					errors.Is(err, objects.ErrFenced)
			}
			err := f.slot.Ack(f.position)
			require.True(t, ended(err), err)
			failed := false
			for _, err := range f.slot.Changes(t.Context()) {
				failed = ended(err)
				require.True(t, failed, err)
			}
			require.True(t, failed)
			if slots := f.db.Slots(); len(slots) > 0 {
				last := slots[len(slots)-1]
				require.NoError(t, errors.Join(f.write(), f.db.Flush(t.Context())))
				require.Equal(t, last.Acked, f.db.Slots()[len(slots)-1].Acked)
			}
		})
	}
}

// Whatever the acknowledgement of a consumer on another machine is replaced with, no position comes of it that no
// consumer has acknowledged, and the slot can be dropped and made again.
func TestDamagedAcknowledgements(t *testing.T) {
	t.Parallel()
	newest := func(s objstore.Store) (key string, data []byte) {
		for o, err := range s.List(t.Context(), "slot/"+followedSlot+"/", "") {
			require.NoError(t, err)
			if o.Size != 80 {
				data = make([]byte, o.Size)
				_, err := s.GetRange(t.Context(), o.Key, 0, data)
				require.NoError(t, err)
				return o.Key, data
			}
		}
		return "", nil
	}
	for i := 0; ; i += scale.Stride(7, 1) {
		s := objstore.NewMem()
		f := newFar(t, 1, s)
		require.NoError(t, errors.Join(f.write(), f.write(), f.db.Flush(t.Context()), f.consume(s), f.takeAll()))
		require.NoError(t, f.slot.Ack(f.position))
		key, data := newest(s)
		if i >= len(data) {
			require.Greater(t, i, 100)
			break
		}
		data[i] ^= 1 << (i % 8)
		require.NoError(t, s.Put(t.Context(), key, bytes.NewReader(data), int64(len(data))))
		before := f.db.Slots()[0].Acked
		require.NoError(t, errors.Join(f.write(), f.db.Flush(t.Context())))
		require.Equal(t, before, f.db.Slots()[0].Acked)
		_, err := f.db.OpenSlot(followedSlot)
		require.ErrorIs(t, err, kv.ErrCorruption, i)
		require.ErrorIs(t, f.consume(s), kv.ErrCorruption, i)
		require.NoError(t, f.db.DropSlot(followedSlot))
		slot, snap, err := f.db.CreateSlot(t.Context(), followedSlot)
		require.NoError(t, errors.Join(err, snap.Close()))
		f.acked, f.position = slot.Position(), slot.Position()
		require.NoError(t, slot.Close())
		require.NoError(t, f.consume(s))
	}
}

// A flush looks for the acknowledgements of each closed slot with one LIST. At rest no request is sent.
func TestWhatAClosedSlotCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := func(slots int) int64 {
			s := storetest.NewCountedStore()
			db := openObjects(t, s, nil)
			for i := range slots {
				slot, snap, err := db.CreateSlot(t.Context(), fmt.Sprint("slot", i))
				require.NoError(t, errors.Join(err, snap.Close(), slot.Close()))
			}
			flush := func() {
				require.NoError(t, errors.Join(db.Set([]byte("key"), nil, kv.Sync), db.Flush(t.Context())))
			}
			flush()
			n := s.Requests(flush)[objstore.List]
			time.Sleep(24 * time.Hour) // what is not needed is deleted
			require.Empty(t, s.Requests(func() { time.Sleep(24 * time.Hour) }))
			require.NoError(t, db.Close())
			return n
		}
		none := lists(0)
		require.Equal(t, []int64{none + 1, none + 2}, []int64{lists(1), lists(2)})
	})
}

// A consumer on another machine that is too far behind has lost its slot, whether it is open or opens it then.
func TestASlotOnAnotherMachineIsOverrun(t *testing.T) {
	t.Parallel()
	s := objstore.NewMem()
	db := openObjects(t, s, &kv.Options{MaxSlotBytes: 100 << 10})
	slot, snap, err := db.CreateSlot(t.Context(), followedSlot)
	require.NoError(t, errors.Join(err, snap.Close(), slot.Close()))
	view, err := kv.OpenReadOnly("", &kv.Options{Objects: &objects.Config{Store: s}, PollInterval: time.Millisecond})
	require.NoError(t, err)
	far, err := view.OpenSlot(followedSlot)
	require.NoError(t, err)
	value := make([]byte, 60<<10)
	for i := range value {
		value[i] = byte(i * i >> 3)
	}
	for range 3 {
		require.NoError(t, errors.Join(db.Set([]byte("key"), value, kv.Sync), db.Flush(t.Context())))
	}
	for _, err := range far.Changes(t.Context()) {
		require.ErrorIs(t, err, kv.ErrSlotLost)
	}
	_, err = view.OpenSlot(followedSlot)
	require.ErrorIs(t, err, kv.ErrSlotLost)
	require.NotEmpty(t, view.Slots()[0].Lost)
	require.NoError(t, errors.Join(view.Close(), db.DropSlot(followedSlot), db.Close()))
}

// Ingests ask what a consumer on another machine has acknowledged before they give up what it may need.
func TestIngestsLoseNoSlotOnAnotherMachine(t *testing.T) {
	t.Parallel()
	s := objstore.NewMem()
	f := newFar(t, 1, s)
	require.NoError(t, f.db.Close())
	f.db = openObjects(t, s, &kv.Options{MaxSlotBytes: 1})
	require.NoError(t, f.consume(s))
	for range 5 {
		require.NoError(t, errors.Join(f.ingest(), f.takeAll(), f.slot.Ack(f.position)))
	}
	require.Empty(t, f.db.Slots()[0].Lost)
	for range 4 {
		require.NoError(t, f.ingest())
	}
	require.NotEmpty(t, f.db.Slots()[0].Lost)
}

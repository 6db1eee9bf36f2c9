package objects

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// A followed is a store in an object store that writers take over from each other, and the consumer of a slot, which
// outlives them.
type followed struct {
	t      *testing.T
	rng    *rand.Rand
	states []storetest.Model // after each write that was begun
	synced int               // how many of them are durable for certain

	made     bool // the slot is there for certain
	n        int  // writes that the consumer has
	position uint64
	acked    uint64 // what was acknowledged for certain

	db   *kv.DB
	slot *kv.Slot
}

const followedSlot = "replica"

func newFollowed(t *testing.T, seed uint64) *followed {
	return &followed{t: t, rng: rand.New(rand.NewPCG(seed, 620)), states: []storetest.Model{{}}}
}

// open takes the store over. It has the writes that are durable, and whatever the consumer has.
func (f *followed) open(s objstore.Store) error {
	db, err := kv.Open("", objectsOptions(f.rng, s))
	if err != nil {
		return err
	}
	f.t.Cleanup(func() { _ = db.Close() })
	f.db, f.slot = db, nil
	count, err := db.Get([]byte("count"))
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	n, _ := strconv.Atoi(string(count))
	require.GreaterOrEqual(f.t, n, f.synced, "acknowledged writes are lost")
	require.GreaterOrEqual(f.t, n, f.n, "the consumer has what the store has lost")
	require.Less(f.t, n, len(f.states))
	f.states = f.states[:n+1]
	if !f.made {
		if len(db.Slots()) > 0 { // it was made, and nothing learned that
			return db.DropSlot(followedSlot)
		}
		return nil
	}
	if f.slot, err = db.OpenSlot(followedSlot); err != nil {
		return err
	}
	require.GreaterOrEqual(f.t, db.Slots()[0].Acked, f.acked, "an acknowledgement is lost")
	return f.slot.Skip(f.position)
}

// step does something at random. After an error it is not known whether it was done.
func (f *followed) step() error {
	ctx := context.Background()
	switch n := f.rng.IntN(30); {
	case f.slot == nil && n < 10:
		slot, snap, err := f.db.CreateSlot(ctx, followedSlot)
		if err != nil {
			return err
		}
		defer func() { require.NoError(f.t, snap.Close()) }()
		f.slot, f.made, f.n, f.position = slot, true, len(f.states)-1, slot.Position()
		f.synced, f.acked = f.n, f.position
		storetest.RequireContents(f.t, f.states[f.n], snap)
	case n < 2:
		if err := f.db.Flush(ctx); err != nil {
			return err
		}
		f.synced = len(f.states) - 1
	case n == 2:
		return f.db.Compact(ctx, nil, nil)
	case n == 3:
		return f.ingest()
	case n < 8 && f.slot != nil:
		if err := f.slot.Ack(f.slot.Position()); err != nil {
			return err
		}
		f.acked = f.slot.Position()
	case n < 14 && f.slot != nil:
		return f.take(f.rng.IntN(len(f.states) - f.n))
	default:
		return f.write()
	}
	return nil
}

// begin returns the model after the next write.
func (f *followed) begin() storetest.Model {
	m := maps.Clone(f.states[len(f.states)-1])
	m["count"] = strconv.Itoa(len(f.states))
	f.states = append(f.states, m)
	return m
}

func (f *followed) write() error {
	m, b := f.begin(), f.db.NewBatch()
	err := b.Set([]byte("count"), []byte(m["count"]))
	for range f.rng.IntN(5) {
		key := fmt.Appendf(nil, "key/%02d", f.rng.IntN(30))
		switch f.rng.IntN(8) {
		case 0:
			err = errors.Join(err, b.Delete(key))
			m.Delete(string(key))
		case 1:
			end := append(slices.Clip(key), '~')
			err = errors.Join(err, b.DeleteRange(key, end))
			m.DeleteRange(key, end)
		default:
			value := storetest.RandomBytes(f.rng, f.rng.IntN(1+f.rng.IntN(4000)))
			err = errors.Join(err, b.Set(key, value))
			m.Set(string(key), string(value))
		}
	}
	require.NoError(f.t, err)
	level := []*kv.WriteOptions{kv.Sync, kv.NoSync, kv.Async}[f.rng.IntN(3)]
	if err := b.Commit(level); err != nil {
		return err
	}
	if level == kv.Sync {
		f.synced = len(f.states) - 1
	}
	return nil
}

func (f *followed) ingest() error {
	m := f.begin()
	m.Set("key/40", m["count"])
	path := storetest.IngestFile(f.t, vfs.OS, filepath.Join(f.t.TempDir(), "in"), nil, "count="+m["count"],
		"key/40="+m["count"])
	if err := f.db.Ingest(context.Background(), []string{path}, nil); err != nil {
		return err
	}
	f.synced = len(f.states) - 1
	return nil
}

// take takes n changes: after each the consumer has what the store had.
func (f *followed) take(n int) error {
	if n == 0 {
		return nil
	}
	replica := maps.Clone(f.states[f.n])
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	for c, err := range f.slot.Changes(ctx) {
		if err != nil {
			return err
		}
		if err := c.Replay(storetest.ModelWriter{Model: replica}); err != nil {
			return err
		}
		f.n, f.position = f.n+1, c.Last()
		f.synced = max(f.synced, f.n)
		require.Equal(f.t, f.states[f.n], replica, "after the change up to %d", f.position)
		require.NoError(f.t, f.slot.Skip(f.position))
		if n--; n == 0 {
			break
		}
	}
	return nil
}

// end requires that the consumer gets the rest, and that the store forgets what it has kept.
func (f *followed) end(s objstore.Store) {
	f.t.Helper()
	require.NoError(f.t, f.open(s))
	if f.made {
		require.NoError(f.t, f.take(len(f.states)-1-f.n))
		require.NoError(f.t, f.slot.Close())
		require.NoError(f.t, f.db.DropSlot(followedSlot))
	}
	requireOnlyLiveObjects(f.t, s, &objectsWriter{t: f.t, rng: f.rng, db: f.db})
	require.NoError(f.t, f.db.Close())
}

// A consumer follows a store whatever the network does, from writer to writer, some of which are taken over while they
// live. A writer that was taken over moves no acknowledgement.
func TestSlotsOfAnObjectStoreWithTroubles(t *testing.T) {
	t.Parallel()
	for name, rule := range storeFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(scale.Count(1, 20)) {
				f, s := newFollowed(t, seed), newObjectsStore(t)
				for life := range uint64(4) {
					faults := objstoretest.NewFaults(s, seed*10+life)
					faults.Inject(rule)
					before, acked := f.slot, f.db
					require.NoError(t, f.open(faults))
					if before != nil && acked != nil {
						requireFencedSlot(t, before)
					}
					for range 100 {
						require.NoError(t, f.step())
					}
					faults.Deliver()
					if f.rng.IntN(2) == 0 {
						require.NoError(t, f.db.Close())
						f.slot = nil
					}
				}
				require.True(t, f.made)
				f.end(s)
			}
		})
	}
}

// requireFencedSlot requires that the slot of a writer that was taken over says so, unless there is nothing to do.
func requireFencedSlot(t *testing.T, slot *kv.Slot) {
	t.Helper()
	for c, err := range slot.Changes(t.Context()) { // those that are durable may come
		if err != nil {
			require.ErrorIs(t, err, objects.ErrFenced)
			return
		}
		err = slot.Ack(c.Last())
		require.ErrorIs(t, err, objects.ErrFenced)
		return
	}
}

// A process that dies at any of its requests, whether that is still performed or not, loses nothing that the consumer
// has, and no acknowledgement.
func TestDeathOfTheWriterOfASlot(t *testing.T) {
	t.Parallel()
	for _, outcome := range []objstoretest.Outcome{objstoretest.NotPerformed, objstoretest.LostReply} {
		for nth := int64(1); ; nth += int64(scale.Stride(8, 1)) {
			f, s := newFollowed(t, uint64(nth)), objstore.NewMem()
			require.NoError(t, f.open(s))
			for range 30 {
				require.NoError(t, f.step())
			}
			require.NoError(t, f.db.Close())
			faults := deadFrom(s, nth, outcome)
			err := f.open(faults)
			for i := 0; i < 60 && err == nil; i++ {
				err = f.step()
			}
			_ = f.db.Close()
			f.end(s)
			if faults.Calls() < nth {
				require.Greater(t, nth, int64(15))
				break
			}
		}
	}
}

// A store that gets over requests that fail loses no slot: what its logs lack is in memory.
func TestSlotsWhileAnObjectStoreRefuses(t *testing.T) {
	t.Parallel()
	for _, times := range []int64{1, 7, 100} {
		for at := int64(20); at < 20+int64(scale.Count(60, 600)); at += 1 + 5/int64(scale.Count(1, 5)) {
			followRefused(t, at, times)
		}
	}
}

// followRefused lets some of the requests to write fail, from one on.
func followRefused(t *testing.T, at, times int64) {
	rng, what := rand.New(rand.NewPCG(uint64(at), 621)), fmt.Sprintf("request %d fails, and %d in all", at, times)
	faults := objstoretest.NewFaults(objstore.NewMem(), uint64(at))
	faults.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
		if c.N >= at && c.N < at+times && c.Kind != objstore.Get && c.Kind != objstore.List {
			f = objstoretest.Fault{Outcome: objstoretest.NotPerformed, Err: errors.New("refused")}
		}
		return f
	})
	var db *kv.DB
	again := func(f func() error) {
		t.Helper()
		var err error
		storetest.Until(func() bool {
			if err = f(); err != nil {
				require.NotErrorIs(t, err, kv.ErrSlotLost, what)
				time.Sleep(time.Millisecond)
			}
			return err == nil
		})
		require.NoError(t, err, what)
	}
	again(func() (err error) {
		db, err = kv.Open("", objectsOptions(rng, faults))
		return err
	})
	defer func() { _ = db.Close() }()
	replica, slot := storetest.Model{}, (*kv.Slot)(nil)
	again(func() error {
		s, snap, err := db.CreateSlot(t.Context(), followedSlot)
		if errors.Is(err, iofs.ErrExist) {
			return errors.Join(err, db.DropSlot(followedSlot))
		}
		if err != nil {
			return err
		}
		slot = s
		return snap.Close()
	})
	follow := func() {
		t.Helper()
		again(func() error {
			if err := db.Set([]byte("last"), []byte("write"), kv.Sync); err != nil {
				return err
			}
			last := db.Slots()[0].Acked + db.Slots()[0].Behind
			for c, err := range slot.Changes(t.Context()) {
				if err != nil {
					return err
				}
				err = errors.Join(c.Replay(storetest.ModelWriter{Model: replica}), slot.Skip(c.Last()))
				if err != nil {
					return err
				}
				if c.Last() >= last {
					break
				}
			}
			return nil
		})
	}
	for i := range 60 {
		again(func() error {
			b := db.NewBatch()
			_ = b.Set(fmt.Appendf(nil, "key/%02d", rng.IntN(20)), storetest.RandomBytes(rng, rng.IntN(3000)))
			_ = b.Set([]byte("count"), strconv.AppendInt(nil, int64(i), 10))
			return b.Commit([]*kv.WriteOptions{kv.Sync, kv.NoSync, kv.Async}[rng.IntN(3)])
		})
		switch rng.IntN(12) {
		case 0:
			again(func() error { return db.Flush(t.Context()) })
		case 1:
			again(func() error { return slot.Ack(slot.Position()) })
		case 2:
			follow()
		}
	}
	follow()
	storetest.RequireContents(t, replica, db)
}

// A slot at rest sends no request, in a day, nor does a consumer that waits.
func TestASlotAtRestSendsNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewCountedStore()
		db := openObjects(t, s, nil)
		slot, snap, err := db.CreateSlot(t.Context(), followedSlot)
		require.NoError(t, err)
		require.NoError(t, snap.Close())
		require.NoError(t, db.Set([]byte("key"), nil, kv.Sync))
		got := make(chan uint64)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(got)
			for c, err := range slot.Changes(ctx) {
				if err != nil || slot.Ack(c.Last()) != nil {
					return
				}
				got <- c.Last()
			}
		}()
		require.EqualValues(t, 1, <-got)
		time.Sleep(24 * time.Hour) // what the acknowledgement has replaced is deleted
		require.Empty(t, s.Requests(func() { time.Sleep(24 * time.Hour) }))
		cancel()
		<-got
		require.NoError(t, db.Close())
	})
}

// Opening a store with slots sends no request more than opening one without.
func TestSlotsCostNoRequestAtOpen(t *testing.T) {
	t.Parallel()
	requests := func(slots int) map[objstore.Kind]int64 {
		s := storetest.NewCountedStore()
		db := openObjects(t, s, nil)
		for i := range slots {
			_, snap, err := db.CreateSlot(t.Context(), fmt.Sprint("slot", i))
			require.NoError(t, errors.Join(err, snap.Close()))
		}
		for range 3 {
			require.NoError(t, errors.Join(db.Set([]byte("key"), nil, kv.Sync), db.Flush(t.Context())))
		}
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		harness.Settle(db)
		require.NoError(t, errors.Join(db.Set([]byte("key"), nil, kv.Sync), db.Close()))
		db = openObjects(t, s, nil) // the write is not in the log any more
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		harness.Settle(db)
		require.NoError(t, db.Close())
		n := s.Requests(func() { db = openObjects(t, s, nil) })
		require.Len(t, db.Slots(), slots)
		for _, s := range db.Slots() {
			require.Positive(t, s.Bytes, "there is history to be read")
		}
		require.NoError(t, db.Close())
		return n
	}
	require.Equal(t, requests(0), requests(5))
}

// Checkpoints and branches have no slots, nor files that are kept for them, and a branch that is dropped ends its own.
func TestCopiesInAnObjectStoreHaveNoSlots(t *testing.T) {
	t.Parallel()
	s := objstore.NewMem()
	db := openObjects(t, s, nil)
	slot, snap, err := db.CreateSlot(t.Context(), followedSlot)
	require.NoError(t, errors.Join(err, snap.Close()))
	for range 3 {
		require.NoError(t, errors.Join(db.Set([]byte("key"), nil, kv.Sync), db.Flush(t.Context())))
	}
	_, err = db.PinCheckpoint(t.Context(), "saved")
	require.NoError(t, err)
	main := &objects.Config{Store: s}
	require.NoError(t, main.Clone(t.Context(), "trial"))
	saved := &objects.Config{Store: s, Checkpoint: "saved"}
	require.NoError(t, saved.Clone(t.Context(), "older"))
	view, err := kv.OpenReadOnly("", &kv.Options{Objects: saved})
	require.NoError(t, err)
	require.Empty(t, view.Slots())
	require.NoError(t, view.Close())
	for _, name := range []string{"trial", "older"} {
		of, err := kv.Open("", &kv.Options{Objects: &objects.Config{Store: s, Branch: name}})
		require.NoError(t, err)
		require.Empty(t, of.Slots())
		_, err = of.OpenSlot(followedSlot)
		require.ErrorIs(t, err, iofs.ErrNotExist)
		own, snap, err := of.CreateSlot(t.Context(), followedSlot)
		require.NoError(t, errors.Join(err, snap.Close()))
		require.NoError(t, errors.Join(of.Set([]byte("key"), nil, kv.Sync), of.Flush(t.Context())))
		require.NoError(t, errors.Join(own.Close(), of.Close()))
	}
	require.NoError(t, main.DropBranch(t.Context(), "trial"))
	kept := 0
	for _, key := range storetest.KeysOf(t, s) {
		require.False(t, strings.HasPrefix(key, "data/trial") && !strings.Contains(key, "/entry/"), key)
		if strings.HasSuffix(key, ".kept") {
			kept++
		}
	}
	require.Equal(t, 3+1, kept)
	require.NoError(t, errors.Join(slot.Close(), db.Close()))
}

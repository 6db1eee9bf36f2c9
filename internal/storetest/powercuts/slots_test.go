package powercuts

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv"
)

// A delivered is how far a consumer is: it has the first writes of a history, up to the one that counted itself as n.
type delivered struct {
	n        int
	position uint64
}

// A consumer follows a store through a slot. What it has is on another machine: no cut takes it.
type consumer struct {
	slot *kv.Slot
	last atomic.Pointer[delivered] // nil: the slot is not made yet

	elsewhere bool   // it is not in the writer's process
	view      *kv.DB // then: what it has opened the slot of
}

const slotName = "replica"

// open gives the consumer its slot of a store that was opened again. One that is elsewhere may go on with the slot that
// it has. Without a consumer it does nothing.
func (c *consumer) open(r *cutRun) {
	if c == nil || c.last.Load() == nil || c.view != nil && r.rng.IntN(2) == 0 {
		return
	}
	db := r.db
	if c.elsewhere {
		c.close(r.t)
		o := stores.RandomOptions(r.rng)
		harness.Of(o).FS = r.fs
		var err error
		c.view, err = kv.OpenReadOnly("db", o)
		require.NoError(r.t, err)
		db = c.view
	}
	var err error
	c.slot, err = db.OpenSlot(slotName)
	require.NoError(r.t, err)
	require.NoError(r.t, c.slot.Skip(c.last.Load().position))
}

func (c *consumer) close(t *testing.T) {
	if c.view != nil {
		require.NoError(t, c.view.Close())
	}
	c.view = nil
}

// A lockedFS is a file system whose power can be cut, with locks between those who have it open.
type lockedFS struct {
	*crashfs.FS
	locks *vfs.Mem
}

func (f lockedFS) Lock(name string, mode vfs.LockMode) (io.Closer, error) {
	if err := f.locks.MkdirAll(filepath.Dir(name)); err != nil {
		return nil, err
	}
	lock, err := f.locks.Lock(name, mode)
	if err != nil {
		return nil, err
	}
	if _, err = f.FS.Lock(name, mode); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

func (f lockedFS) Remove(name string) error {
	_ = f.locks.Remove(name)
	return f.FS.Remove(name)
}

// step makes the slot, takes some changes, or acknowledges what it has.
func (c *consumer) step(r *cutRun) {
	at := c.last.Load()
	switch {
	case at == nil:
		slot, snap, err := r.db.CreateSlot(context.Background(), slotName)
		require.NoError(r.t, err)
		n := len(r.states) - 1
		storetest.RequireContents(r.t, r.states[n], snap)
		require.NoError(r.t, snap.Close())
		c.slot = slot
		c.last.Store(&delivered{n, slot.Position()})
		r.durable()
		if c.elsewhere {
			require.NoError(r.t, slot.Close())
			c.open(r)
		}
	case r.rng.IntN(8) == 0:
		require.NoError(r.t, r.ingest())
		r.durable()
	case r.rng.IntN(3) == 0:
		require.NoError(r.t, c.slot.Ack(at.position))
	case c.view != nil && r.rng.IntN(3) == 0:
		require.NoError(r.t, c.view.Refresh(context.Background())) // else the writer keeps files
	default:
		behind := len(r.states) - 1 - at.n
		c.take(r, c.slot, *at, r.rng.IntN(behind+1), c.last.Store)
	}
}

// take takes n changes that follow what the consumer has: after each it has what the store had.
func (c *consumer) take(r *cutRun, slot *kv.Slot, at delivered, n int, store func(*delivered)) {
	if n == 0 {
		return
	}
	replica := maps.Clone(r.states[at.n])
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	for change, err := range slot.Changes(ctx) {
		require.NoError(r.t, err, "%d changes were to come", n)
		if change.Last() <= at.position {
			continue // it was delivered before the crash, and not acknowledged
		}
		require.NoError(r.t, change.Replay(storetest.ModelWriter{Model: replica}))
		at = delivered{at.n + 1, change.Last()}
		require.Equal(r.t, r.states[at.n], replica, "after the change up to %d", at.position)
		store(&at)
		require.NoError(r.t, slot.Skip(at.position))
		if n--; n == 0 {
			return
		}
	}
}

// catchUp brings the consumer up to the store that was recovered with n writes.
func (c *consumer) catchUp(r *cutRun, db *kv.DB, cut cut, n int, what string) {
	if c == nil || cut.slot == nil {
		return
	}
	require.LessOrEqual(r.t, cut.slot.n, n, "%s: the consumer has what the store has lost", what)
	slot, err := db.OpenSlot(slotName)
	require.NoError(r.t, err, what)
	c.take(r, slot, *cut.slot, n-cut.slot.n, func(*delivered) {})
	require.NoError(r.t, slot.Close())
}

// TestPowerCutsOfSlots cuts the power in the middle of histories that a consumer follows, in the writer's process or
// another. It never has what the store has not, and afterwards it gets all that it has not, once.
func TestPowerCutsOfSlots(t *testing.T) {
	t.Parallel()
	for _, elsewhere := range []bool{false, true} {
		t.Run("elsewhere="+strconv.FormatBool(elsewhere), func(t *testing.T) {
			t.Parallel()
			cutsOfSlots(t, scale.Count(40, 240), elsewhere, func() *storetest.FrozenStore { return nil })
		})
	}
}

// TestPowerCutsOfSlotsInAnObjectStore is TestPowerCutsOfSlots for stores of which the log alone is on the disk whose
// power is cut, at most openings.
func TestPowerCutsOfSlotsInAnObjectStore(t *testing.T) {
	t.Parallel()
	cutsOfSlots(t, scale.Count(scale.Fewer(30, 15), 240), false, storetest.NewFrozenStore)
}

func cutsOfSlots(t *testing.T, want int, elsewhere bool, objects func() *storetest.FrozenStore) {
	const stride = 20
	cuts, followed := 0, 0
	for seed := uint64(0); cuts < want; seed++ {
		r := &cutRun{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 611)),
			consumer: &consumer{elsewhere: elsewhere}, objects: objects()}
		r.run(100, stride)
		r.consumer.close(t)
		cuts += len(r.cuts)
		for _, c := range r.cuts {
			if c.slot != nil {
				followed++
			}
		}
	}
	require.Positive(t, followed)
	t.Log(strconv.Itoa(cuts) + " power cuts, " + strconv.Itoa(followed) + " with a slot")
}

// TestSlotsWhileTheDiskFails lets each call that a store makes fail, once or three times, while a consumer follows: it
// has what the store has when both have got over it.
func TestSlotsWhileTheDiskFails(t *testing.T) {
	t.Parallel()
	lost, runs := 0, 0
	for _, mode := range storetest.FaultModes {
		for at := 20; mode.Resumes && at < 20+scale.Count(150, 1200); at += 1 + 6/scale.Count(1, 8) {
			runs++
			if !followFailing(t, mode, at) {
				lost++
			}
		}
	}
	t.Logf("%d histories", runs)
	require.Zero(t, lost, "slots that are lost: what the disk has not is in memory")
}

// followFailing reports whether the slot was not lost.
func followFailing(t *testing.T, mode storetest.FaultMode, at int) (kept bool) {
	rng := rand.New(rand.NewPCG(uint64(at), 612))
	what := fmt.Sprintf("call %d fails (%s)", at, mode.Name)
	defer func() {
		if t.Failed() {
			t.Log(what)
		}
	}()
	fs := &vfstest.FaultFS{FS: vfs.NewMem()}
	fs.Set(func(c vfstest.Call) (int, error) {
		if !mode.Fails(c, at) {
			return 0, nil
		}
		return c.Bytes / 2, storetest.ErrDisk
	})
	open := func() (db *kv.DB) {
		o := stores.RandomOptions(rng)
		stores.RandomSeparation(o, rng)
		harness.Of(o).FS, harness.Of(o).Backoff, harness.Of(o).MaxManifestSize = fs, storetest.Quick, 2000
		again(t, what, func() (err error) {
			db, err = kv.Open("db", o)
			return err
		})
		return db
	}
	db := open()
	defer func() { _ = db.Close() }() // it may fail, and nothing is lost
	replica, slot := storetest.Model{}, (*kv.Slot)(nil)
	again(t, what, func() error {
		s, snap, err := db.CreateSlot(t.Context(), slotName)
		if errors.Is(err, iofs.ErrExist) { // the call before has made it, although it failed
			if err = db.DropSlot(slotName); err == nil {
				err = errRetry
			}
		}
		if err != nil {
			return err
		}
		slot = s
		return snap.Close()
	})
	stop := func() {}
	if at%2 == 1 { // the consumer waits in the log for what fails
		stop = followBeside(slot, replica)
	}
	for i := range 60 {
		again(t, what, func() error {
			b := db.NewBatch()
			_ = b.Set(fmt.Appendf(nil, "key/%02d", rng.IntN(20)), storetest.RandomBytes(rng, rng.IntN(3000)))
			_ = b.Set([]byte("count"), strconv.AppendInt(nil, int64(i), 10))
			return b.Commit([]*kv.WriteOptions{kv.Sync, kv.NoSync, kv.Async}[rng.IntN(3)])
		})
		switch n := rng.IntN(12); {
		case n == 0:
			again(t, what, func() error { return db.Flush(t.Context()) })
		case n == 5:
			disk := fs.FS // writing the file is not under test
			path := storetest.IngestFile(t, disk, fmt.Sprint("ingest-", i), nil, "count="+strconv.Itoa(i), "key/30=in")
			again(t, what, func() error { return db.Ingest(t.Context(), []string{path}, nil) })
		case at%2 == 1:
		case n == 1:
			lost := false
			again(t, what, func() error {
				err := slot.Ack(slot.Position())
				if lost = errors.Is(err, kv.ErrSlotLost); lost {
					t.Log(what, err)
					return nil
				}
				return err
			})
			if lost {
				return false
			}
		case n < 4:
			if !follow(t, what, db, slot, replica) {
				return false
			}
		}
	}
	stop()
	if !follow(t, what, db, slot, replica) {
		return false
	}
	fs.Set(nil)
	storetest.RequireContents(t, replica, db)
	return true
}

// followBeside takes changes in a goroutine until stop.
func followBeside(slot *kv.Slot, replica storetest.Model) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for c, err := range slot.Changes(ctx) {
				if err != nil || c.Replay(storetest.ModelWriter{Model: replica}) != nil || slot.Skip(c.Last()) != nil {
					time.Sleep(time.Millisecond)
					break // the disk fails: again
				}
			}
		}
	}()
	return func() { cancel(); <-done }
}

var errRetry = errors.New("again")

// again does something until it works: the disk fails for a while only.
func again(t *testing.T, what string, f func() error) {
	t.Helper()
	err := errRetry
	for range 2000 {
		if err = f(); err == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
	require.NoError(t, err, what)
}

// follow brings a replica up to the store. It returns false if the slot is lost.
func follow(t *testing.T, what string, db *kv.DB, slot *kv.Slot, replica storetest.Model) bool {
	t.Helper()
	lost := false
	again(t, what, func() error {
		if err := db.Set([]byte("last"), []byte("write"), kv.Sync); err != nil {
			return err
		}
		for c, err := range slot.Changes(t.Context()) {
			if lost = errors.Is(err, kv.ErrSlotLost); lost {
				t.Log(what, err)
				return nil
			}
			if err != nil {
				return err
			}
			if err := c.Replay(storetest.ModelWriter{Model: replica}); err != nil {
				return err
			}
			if err := slot.Skip(c.Last()); err != nil {
				return err
			}
			if slot.Position() >= db.Slots()[0].Acked+db.Slots()[0].Behind {
				return nil
			}
		}
		return nil
	})
	return !lost
}

package kv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// A consumer in another process gets each commit, whatever is made of the logs meanwhile: they are removed once they
// are acknowledged, and another process goes on with the store.
func TestASlotElsewhereYieldsEachCommit(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]*WriteOptions{"sync": Sync, "nosync": NoSync, "async": Async} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			db := openDir(t, dir, &Options{MemtableSize: 64 << 10})
			require.NoError(t, db.Set([]byte("before"), []byte("1"), o))
			slot := makeSlot(t, db, "index")
			view := openView(t, dir, nil)
			_, err := view.OpenSlot("index")
			require.ErrorIs(t, err, ErrLocked)
			_, err = view.OpenSlot("none")
			require.ErrorIs(t, err, fs.ErrNotExist)
			require.NoError(t, slot.Close())
			far, err := view.OpenSlot("index")
			require.NoError(t, err)
			_, err = db.OpenSlot("index")
			require.ErrorIs(t, err, ErrLocked)
			require.ErrorIs(t, db.DropSlot("index"), ErrLocked)
			n := 0
			for round := range 8 {
				logs, err := filepath.Glob(filepath.Join(dir, "*.wal"))
				require.NoError(t, err)
				var want listed
				for range 5 {
					k, v := fmt.Appendf(nil, "k%d", n), fmt.Appendf(nil, "v%08000d", n)
					require.NoError(t, db.Set(k, v, o))
					require.NoError(t, want.Set(k, v))
					n++
				}
				if round%3 == 1 {
					require.NoError(t, db.Flush(t.Context()))
				}
				var got listed
				changesOf(t, far, 5, func(c *Change) { require.NoError(t, c.Replay(&got)) })
				require.Equal(t, want, got)
				if round%2 == 1 {
					require.NoError(t, far.Ack(far.Position()))
					if round%3 != 1 { // else the Marker's edit gives the logs up
						require.NoError(t, db.Flush(t.Context()))
					}
					storetest.Until(func() bool {
						require.NoError(t, view.Refresh(t.Context()))
						db.cleaner.LookAgain()
						db.cleaner.Wait()
						return !slices.ContainsFunc(logs, func(log string) bool {
							_, err := os.Stat(log)
							return err == nil
						})
					})
				}
				if round == 4 {
					db.abandonLikeACrash(t)
					db = openDir(t, dir, &Options{MemtableSize: 64 << 10})
				}
			}
			require.NoError(t, db.Flush(t.Context()))
			require.Equal(t, far.Position(), db.Slots()[0].Acked)
			require.True(t, db.Slots()[0].Open)
			require.Equal(t, db.Slots()[0].Acked, view.Slots()[0].Acked)
			require.True(t, view.Slots()[0].Open)
			require.NoError(t, far.Close())
			require.NoError(t, db.DropSlot("index"))
			require.NoFileExists(t, filepath.Join(dir, "CONSUMER-index"))
			require.NoError(t, db.Close())
		})
	}
}

// What a view says of slots goes with the view, whatever its writer has by now.
func TestSlotsOfAViewAreAsFarBehindAsItIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := openDir(t, dir, nil)
	require.NoError(t, makeSlot(t, db, "s").Close())
	require.NoError(t, db.Set([]byte("a"), nil, nil))
	view := openView(t, dir, nil)
	require.NoError(t, db.Set([]byte("b"), nil, nil))
	require.NoError(t, db.Flush(t.Context()))
	require.EqualValues(t, 1, view.Slots()[0].Behind)
	require.NoError(t, view.Refresh(t.Context()))
	require.EqualValues(t, 2, view.Slots()[0].Behind)
	require.NoError(t, errors.Join(view.Close(), db.Close()))
}

// What a view shows is not yielded before it is durable, nor acknowledged.
func TestASlotElsewhereWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	db, disk := openHeld(t, nil)
	o := &Options{harness: harness.Harness{FS: disk}}
	require.NoError(t, makeSlot(t, db, "s").Close())
	view := openView(t, "db", o)
	slot, err := view.OpenSlot("s")
	require.NoError(t, err)
	disk.held.Store(true)
	set(t, db, "a", "1")
	require.NoError(t, view.Refresh(t.Context()))
	require.True(t, has(t, view, "a"))
	changes := make(chan uint64)
	go func() {
		defer close(changes)
		for c, err := range slot.Changes(t.Context()) {
			if err == nil {
				changes <- c.Last()
			}
		}
	}()
	<-disk.began // the Marker has the write synced
	_, durable, err := view.slots.Follows("s").Range(t.Context())
	require.NoError(t, err)
	require.Zero(t, durable)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = view.SnapshotOf(ended, slot)
	require.ErrorIs(t, err, context.Canceled)
	disk.release(nil)
	require.EqualValues(t, 1, <-changes)
	require.NoError(t, slot.Close())
	<-changes
	require.NoError(t, errors.Join(view.Close(), db.Close()))
}

// A consumer elsewhere has all writes of a store that was closed, and goes on when it is opened again. One that is
// behind too far loses the slot. Stores that are closed leave no lock.
func TestASlotElsewhereOutlivesItsWriter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := &Options{MaxSlotBytes: 100 << 10}
	db := openDir(t, dir, o)
	require.NoError(t, makeSlot(t, db, "s").Close())
	view := openView(t, dir, nil)
	slot, err := view.OpenSlot("s")
	require.NoError(t, err)
	set(t, db, "a", "1")
	require.NoError(t, db.Close())
	var got listed
	changesOf(t, slot, 1, func(c *Change) { require.NoError(t, c.Replay(&got)) })
	db = openDir(t, dir, o)
	set(t, db, "b", "2")
	changesOf(t, slot, 1, func(c *Change) { require.NoError(t, c.Replay(&got)) })
	require.Equal(t, listed{"set a=1/1", "set b=2/1"}, got)
	require.NoError(t, slot.Ack(2))
	require.ErrorIs(t, slot.Skip(3), ErrSlotLost)
	require.NoError(t, view.Close())
	require.ErrorIs(t, slot.Ack(2), ErrClosed)
	for _, err := range slot.Changes(t.Context()) {
		require.ErrorIs(t, err, ErrClosed)
	}

	view = openView(t, dir, nil)
	_, err = view.SnapshotOf(t.Context(), slot)
	require.ErrorIs(t, err, ErrInvalidOptions)
	slot, err = view.OpenSlot("s")
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, db.Set([]byte("key"), make([]byte, 60<<10), NoSync))
		require.NoError(t, db.Flush(t.Context()))
	}
	for _, err := range slot.Changes(t.Context()) {
		require.ErrorIs(t, err, ErrSlotLost)
	}
	require.ErrorIs(t, slot.Ack(2), ErrSlotLost)
	_, err = view.SnapshotOf(t.Context(), slot)
	require.ErrorIs(t, err, ErrSlotLost)
	require.NotEmpty(t, db.Slots()[0].Lost)
	require.NotEmpty(t, view.Slots()[0].Lost)
	require.NoError(t, slot.Close())
	_, err = view.OpenSlot("s")
	require.ErrorIs(t, err, ErrSlotLost)
	require.NoError(t, db.DropSlot("s"))
	require.Empty(t, view.Slots())
	require.NoError(t, errors.Join(view.Close(), db.Close()))
	require.Nil(t, view.Slots())
	_, err = view.OpenSlot("s")
	require.ErrorIs(t, err, ErrClosed)
}

// Without a consumer elsewhere nothing marks, and logs have what they have without slots.
func TestNothingIsMarkedForAConsumerHere(t *testing.T) {
	t.Parallel()
	db := openDir(t, t.TempDir(), nil)
	slot := makeSlot(t, db, "s")
	set(t, db, "a", "1")
	changesOf(t, slot, 1, func(*Change) {})
	db.marks.Stop() // whatever it had to do is done
	size := db.commits.Log().Size()
	require.NoError(t, db.commits.MarkSynced(t.Context()))
	require.Greater(t, db.commits.Log().Size(), size)
	require.NoError(t, db.Close())
}

// A consumer on another machine begins with a snapshot of what is in tables, and large values come with the changes.
func TestAViewOfAnObjectStoreHasSlots(t *testing.T) {
	t.Parallel()
	bucket := objstore.NewMem()
	db := openObjects(t, bucket, &Options{SeparateFrom: 1000})
	view, err := OpenReadOnly("", &Options{Objects: &objects.Config{Store: bucket}, PollInterval: time.Millisecond})
	require.NoError(t, err)
	_, err = view.OpenSlot("s")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.Empty(t, view.Slots())
	require.NoError(t, makeSlot(t, db, "s").Close())
	large := strings.Repeat("large", 1000)
	set(t, db, "a", "1")
	require.NoError(t, db.Flush(t.Context()))
	set(t, db, "b", large)
	slot, err := view.OpenSlot("s")
	require.NoError(t, err)
	snap, err := view.SnapshotOf(t.Context(), slot)
	require.NoError(t, err)
	require.EqualValues(t, 1, slot.Position())
	storetest.RequireContents(t, storetest.Model{"a": "1"}, snap)
	require.EqualValues(t, 1, view.Slots()[0].Behind, "what is flushed")
	require.NoError(t, errors.Join(snap.Close(), slot.Ack(1), db.Close())) // what was not flushed is in the log
	require.EqualValues(t, 2, view.Slots()[0].Behind)
	model := storetest.Model{"a": "1"}
	changesOf(t, slot, 1, func(c *Change) { require.NoError(t, c.Replay(storetest.ModelWriter{Model: model})) })
	require.Equal(t, storetest.Model{"a": "1", "b": large}, model)
	require.NoError(t, errors.Join(slot.Ack(2), view.Close()))
	require.ErrorIs(t, slot.Ack(2), ErrClosed)
}

// A snapshot of a view that goes back is counted once: when it is closed, others still count.
func TestSnapshotsOfAViewThatGoBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := openWriter(t, dir, nil)
	set(t, db, "a", "1")
	view := openView(t, dir, nil)
	before := view.NewSnapshot()
	set(t, db, "a", "2")
	require.NoError(t, view.Refresh(t.Context()))
	back, last := view.NewSnapshot(), view.NewSnapshot()
	require.True(t, back.moveTo(1))
	require.NoError(t, back.Close())
	require.Equal(t, []base.SeqNum{1, 2}, view.snapshots.seqs())
	require.NoError(t, errors.Join(before.Close(), last.Close()))
	require.Empty(t, view.snapshots.seqs())
}

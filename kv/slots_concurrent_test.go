package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/sstable"
)

// Three consumers that begin while goroutines write, flush, ingest and compact have in the end what the store has. So
// no commit is missed or seen twice where snapshot and changes meet, nor where logs do: operands would show it.
func TestSlotsBesideWriters(t *testing.T) {
	t.Parallel()
	for _, atCommit := range []bool{false, true} {
		t.Run(strconv.FormatBool(atCommit), func(t *testing.T) {
			t.Parallel()
			db := openDir(t, t.TempDir(), &Options{MemtableSize: 64 << 10, Merger: Append(","), SeparateFrom: 1000,
				SeparateAtCommit: atCommit, L0CompactionThreshold: 2})
			var writers, consumers sync.WaitGroup
			for w := range 3 {
				writers.Go(func() { writeBesideSlots(t, db, w, scale.Count(300, 4000)) })
			}
			replicas := make([]storetest.Model, 3)
			for i := range replicas {
				consumers.Go(func() { replicas[i] = followToEnd(t, db, fmt.Sprint("slot", i), i) })
			}
			writers.Wait()
			require.NoError(t, db.Set([]byte("end"), nil, Sync))
			consumers.Wait()
			for i := range replicas {
				storetest.RequireContents(t, replicas[i], db)
			}
			for _, s := range db.Slots() {
				require.Empty(t, s.Lost)
				require.NoError(t, db.DropSlot(s.Name))
			}
			requireNothingKept(t, db)
			require.NoError(t, db.Close())
		})
	}
}

// requireNothingKept holds that no file of the history is left.
func requireNothingKept(t *testing.T, db *DB) {
	t.Helper()
	storetest.Until(func() bool {
		db.cleaner.LookAgain()
		db.cleaner.Wait()
		logs, err := filepath.Glob(filepath.Join(db.dir, "*.wal"))
		require.NoError(t, err)
		kept, err := filepath.Glob(filepath.Join(db.dir, "*.kept"))
		require.NoError(t, err)
		db.mu.Lock()
		defer db.mu.Unlock()
		return len(kept) == 0 && len(logs) <= len(db.imms)+2
	})
}

var durabilities = []*WriteOptions{Sync, NoSync, Async}

func writeBesideSlots(t *testing.T, db *DB, w, n int) {
	rng := rand.New(rand.NewPCG(uint64(w), 613))
	for i := range n {
		key := fmt.Appendf(nil, "key/%02d", rng.IntN(30))
		var err error
		switch b := db.NewBatch(); rng.IntN(12) {
		case 0:
			err = db.Delete(key, NoSync)
		case 1:
			err = db.DeleteRange(key, fmt.Appendf(nil, "key/%02d", rng.IntN(30)), NoSync)
		case 2:
			if err = db.Flush(t.Context()); i%3 == 0 {
				err = errors.Join(err, db.Compact(t.Context(), nil, nil))
			}
		case 3:
			err = db.SetReader(t.Context(), key, 300<<10, bytes.NewReader(make([]byte, 300<<10)), NoSync)
		case 4:
			path := filepath.Join(t.TempDir(), "in.sst")
			out, ferr := os.Create(path)
			require.NoError(t, ferr)
			file := sstable.NewWriter(out, nil)
			require.NoError(t, errors.Join(file.DeleteRange([]byte("key/00"), []byte("key/03")),
				file.Set([]byte("key/02"), fmt.Append(nil, i))))
			_, ferr = file.Finish()
			require.NoError(t, errors.Join(ferr, out.Close()))
			err = db.Ingest(t.Context(), []string{path}, nil)
		case 5, 6:
			err = db.Set(key, storetest.RandomBytes(rng, rng.IntN(4000)), durabilities[rng.IntN(3)])
		default:
			for range rng.IntN(5) {
				err = errors.Join(err, b.Merge(fmt.Appendf(nil, "key/%02d", rng.IntN(30)), fmt.Append(nil, w, i)))
			}
			err = errors.Join(err, b.Commit(durabilities[rng.IntN(3)]))
		}
		require.NoError(t, err)
	}
}

// followToEnd makes a slot, and returns what snapshot and changes amount to when the key "end" is there. Of three
// consumers, two are in this process now, and then in another. Their views are not older than a few changes: the writer
// removes files meanwhile.
func followToEnd(t *testing.T, db *DB, name string, seed int) storetest.Model {
	rng := rand.New(rand.NewPCG(uint64(seed), 614))
	time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
	slot, snap, err := db.CreateSlot(t.Context(), name)
	require.NoError(t, err)
	r := storetest.ModelWriter{Model: storetest.Model{}}
	view := db // or one in another process
	reopen := func() {
		require.NoError(t, slot.Close())
		closeView(t, view, db)
		if view = db; seed > 0 && rng.IntN(2) == 0 {
			view, err = OpenReadOnly(db.dir, &Options{Merger: Append(",")})
			require.NoError(t, err)
		}
		slot, err = view.OpenSlot(name)
		require.NoError(t, err)
	}
	defer func() { require.NoError(t, slot.Close()); closeView(t, view, db) }()
	if seed > 0 {
		require.NoError(t, snap.Close())
		reopen()
		snap, err = view.SnapshotOf(t.Context(), slot)
		require.NoError(t, err)
	}
	it, err := snap.NewIter(nil)
	require.NoError(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		require.NoError(t, r.Set(it.Key(), it.Value()))
	}
	require.NoError(t, it.Error())
	require.NoError(t, errors.Join(it.Close(), snap.Close()))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for {
		for c, err := range slot.Changes(ctx) {
			require.NoError(t, err)
			require.Equal(t, slot.Position()+1, c.First(), "no write has failed: %+v", c)
			require.NoError(t, c.Replay(r))
			require.NoError(t, slot.Skip(c.Last()))
			if _, ok := r.Model["end"]; ok {
				return maps.Clone(r.Model)
			}
			if rng.IntN(20) == 0 {
				require.NoError(t, slot.Ack(c.Last()))
			}
			if rng.IntN(50) == 0 {
				break
			}
		}
		if at := slot.Position(); rng.IntN(3) == 0 {
			reopen()
			require.NoError(t, slot.Skip(at))
		} else if view != db {
			require.NoError(t, view.Refresh(ctx))
		}
	}
}

// closeView closes a view, unless it is the store itself.
func closeView(t *testing.T, view, db *DB) {
	if view != db {
		require.NoError(t, view.Close())
	}
}

// A slot is not of the future: what its snapshot has is durable before it is, whatever the writes were.
func TestAPowerCutAfterASlotWasMade(t *testing.T) {
	t.Parallel()
	disk := crashfs.NewDisk()
	open := func() *DB {
		fsys := crashfs.New(disk, func() error { return nil })
		return openDir(t, "db", &Options{harness: harness.Harness{FS: fsys}})
	}
	db := open()
	require.NoError(t, db.Set([]byte("k"), nil, NoSync))
	at := makeSlot(t, db, "s").Position()
	disk = disk.CutTo(0, rand.New(rand.NewPCG(1, 1)))
	again := open()
	slot, err := again.OpenSlot("s")
	require.NoError(t, err)
	require.Equal(t, at, slot.Position())
	require.True(t, has(t, again, "k"))
	require.NoError(t, errors.Join(again.Close(), db.Close()))
}

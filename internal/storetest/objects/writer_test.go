package objects

import (
	"context"
	"math/rand/v2"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// An objectsWriter makes numbered writes to a store in an object store, and knows what was acknowledged.
type objectsWriter struct {
	t      *testing.T
	rng    *rand.Rand
	db     *kv.DB
	n      int // of the last write that was begun
	synced int // of the last that was acknowledged with Sync
}

// objectsOptions are small and random. What no reader needs is deleted at once.
func objectsOptions(rng *rand.Rand, s objstore.Store) *kv.Options {
	o := stores.NumberedOptions(rng, 0)
	o.Objects = &objects.Config{Store: s, LogInterval: time.Hour, Grace: -1, Patience: time.Millisecond}
	if rng.IntN(4) > 0 {
		harness.Of(o).TuneObjects = storetest.ManyEdits
	}
	harness.Of(o).Backoff, harness.Of(o).RangeSize, o.BlockSize, o.CacheSize = storetest.Quick, 0, 4<<10,
		8<<20 // each block is a request
	o.SeparateAtCommit = false
	return o
}

// takeOver opens the store for writing. What it holds is one of the writes from least to most and all before.
func takeOver(t *testing.T, s objstore.Store, seed uint64, least, most int) *objectsWriter {
	t.Helper()
	w := &objectsWriter{t: t, rng: rand.New(rand.NewPCG(seed, 14))}
	db, err := kv.Open("", objectsOptions(w.rng, s))
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close(); db = nil }) // see stores.CloseAtEnd
	w.db, w.n = db, requireWrites(t, db, least, most)
	w.synced = w.n
	return w
}

// requireWrites requires that a store holds what the first writes leave, as many as from least to most, and returns
// how many.
func requireWrites(t *testing.T, db kv.Reader, least, most int) int {
	t.Helper()
	n, err := storetest.LastNumbered(db.Get, 0)
	require.NoError(t, err)
	require.GreaterOrEqual(t, n, least, "acknowledged writes are lost")
	require.LessOrEqual(t, n, most, "no writer wrote this")
	storetest.RequireContents(t, storetest.Numbered([]int{n}, 0, nil), db)
	return n
}

// try does one write, and now and then a flush or a compaction.
func (w *objectsWriter) try() error {
	w.n++
	level := []*kv.WriteOptions{kv.Sync, kv.NoSync, kv.Async}[w.rng.IntN(3)]
	if err := stores.CommitNumbered(w.db, 0, w.n, level); err != nil {
		return err
	}
	if level == kv.Sync {
		w.synced = w.n
	}
	switch w.rng.IntN(30) {
	case 0:
		return w.db.Flush(context.Background())
	case 1:
		return w.db.Compact(context.Background(), nil, nil)
	}
	return nil
}

// write does so many writes.
func (w *objectsWriter) write(n int) {
	w.t.Helper()
	for range n {
		require.NoError(w.t, w.try())
	}
	require.NoError(w.t, w.db.Flush(context.Background()))
	w.synced = w.n
}

// unneeded returns what the bucket has beyond the store's sorted files and blob files, fences, and the newest entry,
// which has the list of them: as it should be after a flush and a collection. A file that is missing fails the test.
func unneeded(t *testing.T, s objstore.Store, d *kv.DB) (keys []string) {
	t.Helper()
	harness.Settle(d)
	live := map[string]bool{}
	files, release, err := harness.FilesOf(d)
	require.NoError(t, err)
	files.Version.All(func(_ int, f *version.Table) { live[f.Name()] = true })
	for b := range files.Version.Blobs() {
		live[b.Name()] = true
	}
	release()
	newest := ""
	for key, data := range bucket(t, s) {
		kind, name, _ := strings.Cut(key, "/")
		num, _, _ := strings.Cut(name, "-")
		file := num + path.Ext(name)
		switch {
		case kind == "sst" && live[file]:
			delete(live, file)
			continue
		case kind == "entry" && data.size == fenceSize:
			continue
		case kind == "entry" && (newest == "" || key < newest):
			key, newest = newest, key // the one before is not the newest
		}
		if key == "" {
			continue
		}
		keys = append(keys, key)
	}
	require.Empty(t, live, "files are missing")
	require.NotEmpty(t, newest, "the list of files is missing")
	return keys
}

// requireOnlyLiveObjects waits until nothing is in the bucket that the store does not need. The collector comes
// after each list of files, and what late requests have put back is found by one visit of 64. It works in the
// background: the longer this takes, the more looks there are before the next write gives it more to do.
func requireOnlyLiveObjects(t *testing.T, s objstore.Store, w *objectsWriter) {
	t.Helper()
	var left []string
	defer func() {
		if len(left) > 0 {
			t.Logf("not needed and still there: %q", left)
		}
	}()
	looks, writes := 0, 0
	storetest.Until(func() bool {
		if left = unneeded(t, s, w.db); len(left) == 0 {
			return true
		}
		if looks++; looks > writes/16 {
			looks, writes = 0, writes+1
			w.write(1)
		}
		return false
	})
}

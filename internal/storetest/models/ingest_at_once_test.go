package models

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// TestIngestIsSeenAtOnce has one writer that counts up: in a write, in two files that
// are ingested together, and in a write again. Nobody may ever see one of them ahead
// of what came before.
func TestIngestIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(8, 606))
	o := stores.RandomOptions(rng)
	db := stores.OpenDir(t, dir, o)
	from := t.TempDir()
	var done atomic.Bool
	var others sync.WaitGroup
	look := func(seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 607))
		for !done.Load() {
			var reader kv.Reader = db
			s := db.NewSnapshot()
			if rng.IntN(2) == 0 {
				reader = s
			}
			it, err := reader.NewIter(nil)
			require.NoError(t, err)
			seen := map[string]int64{}
			for ok := it.First(); ok; ok = it.Next() {
				seen[string(it.Key())] = storetest.LeadingNumber(t, it.Value())
			}
			require.NoError(t, it.Close())
			require.Equal(t, seen["b1"], seen["b2"], "half an ingest is seen")
			require.GreaterOrEqual(t, seen["a"], seen["b1"])
			require.GreaterOrEqual(t, seen["b1"], seen["c"], "a write is seen, and the ingest before it is not")
			require.LessOrEqual(t, seen["a"]-seen["c"], int64(1))
			require.NoError(t, s.Close())
		}
	}
	others.Go(func() { look(1) })
	others.Go(func() { look(2) })
	others.Go(func() {
		for !done.Load() {
			require.NoError(t, db.Compact(t.Context(), nil, nil))
		}
	})
	others.Go(func() { // so that there is something to flush in the ingest's turn
		for i := 0; !done.Load(); i++ {
			require.NoError(t, db.Set([]byte("z"), strconv.AppendInt(nil, int64(i), 10), kv.NoSync))
		}
	})
	for i := range scale.Count(20, 100) {
		n := strconv.Itoa(i + 1)
		require.NoError(t, db.Set([]byte("a"), []byte(n), kv.Async))
		paths := []string{
			storetest.IngestFile(t, vfs.OS, filepath.Join(from, n+"-1"), nil, "b1="+n),
			storetest.IngestFile(t, vfs.OS, filepath.Join(from, n+"-2"), nil, "b2="+n),
		}
		require.NoError(t, db.Ingest(t.Context(), paths, nil))
		for _, p := range paths {
			require.NoError(t, os.Remove(p))
		}
		require.NoError(t, db.Set([]byte("c"), []byte(n), kv.Async))
	}
	done.Store(true)
	others.Wait()
	require.NoError(t, db.Close())
}

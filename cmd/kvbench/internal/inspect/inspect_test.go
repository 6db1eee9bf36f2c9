package inspect

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/metrics"
)

// store makes a store with files in two levels.
func store(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	policy, err := filterpolicy.Parse("bloom:8")
	require.NoError(t, err)
	db, err := kv.Open(dir, &kv.Options{Filter: policy})
	require.NoError(t, err)
	for i := range 3000 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "key-%05d", i), make([]byte, 50), kv.Async))
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.NoError(t, db.Set([]byte("key-00007"), []byte("young"), kv.Async))
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Close())
	return dir
}

func TestRunSeesLevelsFiltersAndBlocks(t *testing.T) {
	dir := store(t)
	r, err := Run(t.Context(), Config{Path: dir, Probes: 20_000, Walked: 10})
	require.NoError(t, err)
	require.Len(t, r.Shape.Levels, 2)
	require.Len(t, r.Files, 2)
	require.Equal(t, 2, r.Walked)
	large := r.Files[0]
	if r.Files[1].Entries > large.Entries {
		large = r.Files[1]
	}
	require.EqualValues(t, 3000, large.Entries)
	require.Equal(t, "bloom:8", large.Filter)
	require.InDelta(t, 8, large.BitsPerKey, 0.5)
	require.InEpsilon(t, large.Theory, large.Passed.Value, 0.3)
	require.Less(t, large.Passed.Low, large.Passed.Value)
	blocks, want := 0, 0
	for _, b := range r.Blocks.Stored {
		blocks += b.Blocks
	}
	for _, f := range r.Files {
		want += int(f.DataBlocks)
	}
	require.Equal(t, want, blocks, "every block is in the histogram once")

	one, err := Run(t.Context(), Config{Path: filepath.Join(dir, large.Name), Probes: 100})
	require.NoError(t, err)
	require.Empty(t, one.Shape.Levels)
	require.Len(t, one.Files, 1)
	require.Empty(t, one.Blocks.Stored)
}

func TestWhatIsNoStoreIsAnError(t *testing.T) {
	_, err := Run(t.Context(), Config{Path: "/nothing/here"})
	require.ErrorIs(t, err, bench.ErrUsage)
	path := filepath.Join(t.TempDir(), "a.sst")
	require.NoError(t, os.WriteFile(path, []byte("no table"), 0o600))
	_, err = Run(t.Context(), Config{Path: path})
	require.Error(t, err)
}

func TestBuckets(t *testing.T) {
	require.Empty(t, buckets(nil))
	got := buckets([]int64{100, 100, 101, 400})
	total := 0
	for i, b := range got {
		total += b.Blocks
		require.Less(t, b.From, b.To)
		require.True(t, i == 0 || got[i-1].To == b.From)
	}
	require.Equal(t, 4, total)
	require.Len(t, buckets([]int64{5}), 1)
}

// A store with values apart is looked at as any other, with what its files have in blob files.
func TestRunOfAStoreWithBlobFiles(t *testing.T) {
	dir := t.TempDir()
	db, err := kv.Open(dir, &kv.Options{SeparateFrom: 1000, L0CompactionThreshold: 50})
	require.NoError(t, err)
	for i := range 300 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "key-%05d", i%200), make([]byte, 50+3000*(i%2)), kv.Async))
		if i%100 == 99 {
			require.NoError(t, db.Flush(t.Context()))
		}
	}
	require.NoError(t, db.Close())
	r, err := Run(t.Context(), Config{Path: dir, Probes: 100, Walked: 10})
	require.NoError(t, err)
	require.Len(t, r.Files, 3)
	apart, bytes := uint64(0), uint64(0)
	for _, f := range r.Files {
		require.EqualValues(t, 100, f.Entries)
		require.EqualValues(t, 50, f.Apart)
		apart, bytes = apart+f.Apart, bytes+f.BlobBytes
	}
	require.NotEmpty(t, r.Blocks.Stored)
	require.Equal(t, 3, r.Blobs.Files)
	require.Equal(t, apart, r.Blobs.LiveRecords)
	require.Equal(t, bytes, r.Blobs.LiveBytes)
	require.EqualValues(t, r.Blobs.Bytes, r.Blobs.LiveBytes+r.Blobs.Garbage+3*metrics.BlobOverhead)
	none, err := Run(t.Context(), Config{Path: store(t), Probes: 100})
	require.NoError(t, err)
	require.Nil(t, none.Blobs)
}

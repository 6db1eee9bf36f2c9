package advice

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/lookuptrace"
)

// Predictions are what lookups read in copies of the store whose files have the filters of the setting.
func TestPredictionsAgreeWithCopiesOfTheStore(t *testing.T) {
	scale.OneGoroutine(t, "a replay in one goroutine")
	t.Parallel()
	db, dir := adviceStore(t, &kv.Options{CacheSize: 128 << 10})
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	for run := range 3 { // in level 0, beside one run in the last level
		for n := range 1000 {
			fine(t, db.Set(adviceKey(2*(20*n+run)), make([]byte, 100), kv.NoSync))
		}
		require.NoError(t, db.Flush(t.Context()))
	}
	require.Equal(t, 3, db.Metrics().Levels[0].Runs)
	var trace bytes.Buffer
	tracer, err := lookuptrace.New(&trace, &lookuptrace.Options{Keys: true})
	require.NoError(t, err)
	db.TraceLookups(tracer)
	rng := rand.New(rand.NewPCG(3, 3))
	lookups := make([][]byte, 20_000)
	for i := range lookups {
		lookups[i] = adviceKey(rng.IntN(40_000))
		_, err := db.Has(lookups[i])
		fine(t, err)
	}
	require.NoError(t, tracer.Close())
	filters := []string{"none", "bloom:4", "blocked:10", "ribbon:8"}
	r, err := For(t.Context(), db, &Options{Trace: &trace, Filters: filters, Memory: 1 << 20})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	measured := 0
	for _, s := range append(r.Front, r.Now, r.Recommended) {
		if s.BlockSize > 0 || s.CacheSize < 64<<10 {
			continue // CompactFilters keeps the size of blocks
		}
		measured++
		blocks, reads := measure(t, dir, &s, lookups)
		t.Logf("%s, budget %d, cache %d: %.4f blocks, predicted %.4f; %.4f reads, predicted %.4f", s.Filter,
			s.FilterBudget, s.CacheSize, blocks, s.Lookups.Blocks, reads, s.Lookups.DeviceReads)
		require.InEpsilon(t, blocks, s.Lookups.Blocks, 0.05, "%+v", s)
		require.InEpsilon(t, reads, s.Lookups.DeviceReads, 0.05, "%+v", s)
	}
	require.Greater(t, measured, 3)
}

// measure looks keys up in a copy of the store with a setting, and returns data blocks and device reads per lookup. The
// first quarter fills the cache, and is not counted.
func measure(t *testing.T, dir string, s *Setting, lookups [][]byte) (blocks, reads float64) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.CopyFS(to, os.DirFS(dir)))
	o := &kv.Options{CacheSize: s.CacheSize, FilterBudget: s.FilterBudget, MemtableSize: 256 << 10,
		TargetFileSize: 64 << 10, BaseLevelSize: 128 << 10}
	if s.Filter != "" {
		policy, err := filterpolicy.Parse(s.Filter)
		require.NoError(t, err)
		o.Filter = policy
		db, err := kv.Open(to, o)
		require.NoError(t, err)
		_, err = db.CompactFilters(t.Context())
		require.NoError(t, err)
		require.NoError(t, db.Close())
	}
	o.ReadOnly = true
	db, err := kv.Open(to, o)
	require.NoError(t, err)
	warm := len(lookups) / 4
	for i, key := range lookups {
		e, err := db.Explain(key)
		fine(t, err)
		for _, step := range e.Steps {
			if i >= warm {
				blocks += float64(step.Probe.BlocksFromCache + step.Probe.BlocksFromDisk)
				reads += float64(step.Probe.BlocksFromDisk)
			}
		}
	}
	require.NoError(t, db.Close())
	n := float64(len(lookups) - warm)
	return blocks / n, reads / n
}

package kv

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/harness"
)

// A scan of a prefix asks the files that may have keys between its bounds, and none behind them,
// however many say that they have nothing of the prefix: below level 0, and of a flush.
func TestAScanOfAPrefixAsksNoFileBehindItsBounds(t *testing.T) {
	t.Parallel()
	p, err := filterpolicy.ParsePrefix("fixed:4")
	require.NoError(t, err)
	for level, o := range map[int]*Options{0: {harness: harness.Harness{RangeSize: 50 << 10}},
		lastLevel: {TargetFileSize: 16 << 10}} {
		o.Prefix, o.L0CompactionThreshold = p, 100
		db := openMem(t, o)
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range 4000 {
			require.NoError(t, db.Set(fmt.Appendf(nil, "%04d-", 2*i), randomBytes(rng, 200), NoSync))
		}
		if require.NoError(t, db.Flush(t.Context())); level > 0 {
			require.NoError(t, db.Compact(t.Context(), nil, nil))
		}
		m := db.Metrics().Levels[level]
		require.Greater(t, m.Files, 12)
		require.Equal(t, 1, m.Runs)
		asked := func(scan func(it *Iterator) bool, prefix int) uint64 {
			before := db.counters.Prefix.Checks.Load()
			it, err := db.NewIter(&IterOptions{LowerBound: fmt.Appendf(nil, "%04d", prefix),
				UpperBound: fmt.Appendf(nil, "%04d", prefix+1)})
			require.NoError(t, err)
			require.Equal(t, prefix%2 == 0, scan(it), prefix)
			require.NoError(t, it.Close())
			return db.counters.Prefix.Checks.Load() - before
		}
		key := func(prefix int) []byte { return fmt.Appendf(nil, "%04d", prefix) }
		for prefix := range 8000 {
			if prefix%100 > 3 {
				continue
			}
			for _, scan := range []func(it *Iterator) bool{
				(*Iterator).First, (*Iterator).Last,
				func(it *Iterator) bool { return it.SeekGE(key(prefix)) },
				func(it *Iterator) bool { return it.SeekLT(key(prefix + 1)) },
				func(it *Iterator) bool { return it.First() && !it.Next() && it.Last() && !it.Prev() && it.First() },
			} {
				require.LessOrEqual(t, asked(scan, prefix), uint64(4), prefix)
			}
		}
		require.NoError(t, db.Close())
	}
}

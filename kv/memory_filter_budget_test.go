package kv

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/kv/metrics"
)

// TestFilterBudget builds a large last level and a small young run, and checks
// that the filters keep to the budget, that the young run gets more bits per key,
// and that an absent key costs less than at equal memory with the same bits for all.
func TestFilterBudget(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "lookups of one goroutine")
	const old, young = 100_000, 5_000
	const budget = 6 * (old + young) / 8
	spread := absentKeys(t, old, young, &Options{Filter: mustParse("bloom:10"), FilterBudget: budget})
	bits := func(l metrics.Level) float64 { return 8 * float64(l.FilterBytes) / float64(l.Entries) }
	first, last := spread.Levels[0], spread.Levels[lastLevel]
	require.EqualValues(t, young, first.Entries)
	require.EqualValues(t, old, last.Entries)
	require.Greater(t, bits(first), bits(last)+4)
	used := first.FilterBytes + last.FilterBytes
	require.InEpsilon(t, budget, used, 0.1)

	perKey := 8 * float64(used) / (old + young)
	uniform := absentKeys(t, old, young, &Options{Filter: mustParse(fmt.Sprintf("bloom:%.3f", perKey))})
	require.InDelta(t, perKey, bits(uniform.Levels[lastLevel]), 0.1)
	require.Less(t, spread.Lookup().FilterFalsePositives, uniform.Lookup().FilterFalsePositives*3/4,
		"reads at equal memory")
}

// absentKeys makes a store with so many keys in the last level and in one file of
// level 0, and looks for keys between those that are there.
func absentKeys(t *testing.T, old, young int, o *Options) *metrics.Store {
	t.Helper()
	o.InMemory, o.L0CompactionThreshold = true, 100
	db, err := Open("", o)
	require.NoError(t, err)
	defer db.Close()
	keys := rand.New(rand.NewPCG(1, 1)).Perm(old + young)
	for n, i := range keys {
		require.NoError(t, db.Set(fmt.Appendf(nil, "key%08d", i*2), nil, Async))
		if n == old-1 {
			require.NoError(t, db.Compact(t.Context(), nil, nil))
		}
	}
	require.NoError(t, db.Flush(t.Context()))
	for i := range keys {
		ok, err := db.Has(fmt.Appendf(nil, "key%08d", i*2+1))
		require.NoError(t, err)
		require.False(t, ok)
	}
	m := db.Metrics()
	checkIdentities(t, m)
	return m
}

func TestCompactMovesEverythingToTheNewPolicy(t *testing.T) {
	dir := t.TempDir()
	for _, spec := range []string{"bloom:10", "cuckoo:12", "none", "blocked:12"} {
		db, err := Open(dir, &Options{Filter: mustParse(spec)})
		require.NoError(t, err)
		require.NoError(t, db.Set([]byte("k"), []byte(spec), nil))
		require.NoError(t, db.Set([]byte(spec), nil, nil))
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		require.NoError(t, db.Compact(t.Context(), nil, nil), "nothing is left to do")
		db.installed().All(func(_ int, tb *version.Table) {
			r, err := tb.Open(&db.tables)
			require.NoError(t, err)
			if spec == "none" {
				spec = ""
			}
			require.Equal(t, spec, r.Properties().FilterPolicy)
		})
		require.Equal(t, spec == "", db.Metrics().Levels[lastLevel].Unfiltered == 1)
		require.NoError(t, db.Close())
	}
}

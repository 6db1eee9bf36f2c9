package kv

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
)

func TestSmallOptions(t *testing.T) {
	t.Parallel()
	o, err := Small().withDefaults()
	require.NoError(t, err)
	require.EqualValues(t, 2<<20, o.MemtableSize)
	require.InDelta(t, 22<<20, o.CacheSize, 256<<10)
	require.NotSame(t, Small(), Small(), "the caller may change them")
}

func TestMemoryLimitHoldsForAllParts(t *testing.T) {
	scale.OneGoroutine(t, "a count of bytes; TestBudgetHoldsForAllParts has several writers")
	t.Parallel()
	const limit = 8 << 20
	for _, o := range []*Options{
		{MemoryLimit: limit},
		{MemoryLimit: limit, MemtableSize: 1 << 20, MaxMemtables: 5},
		{MemoryLimit: limit, CacheSize: 1 << 30},
		{MemoryLimit: limit, MaxMemtables: 16},
	} {
		o.BlockSize = 512
		db := openMem(t, o)
		check := func() (readers int64) {
			m := db.Metrics()
			readers = m.CacheBytes + m.FilterMemory + m.IndexMemory
			require.LessOrEqual(t, readers+m.MemtableBytes, int64(limit),
				"cache %d, filters %d, indexes %d, memtables %d", m.CacheBytes, m.FilterMemory, m.IndexMemory,
				m.MemtableBytes)
			return readers
		}
		rng := rand.New(rand.NewPCG(3, 3))
		for i := range max(scale.Count(15_000, 30_000), 15_000) {
			require.NoError(t, db.Set(fmt.Appendf(nil, "%08d", rng.IntN(1_000_000)), randomBytes(rng, 300), Async))
			_, err := db.Has(fmt.Appendf(nil, "%08d", rng.IntN(1_000_000)))
			require.NoError(t, err)
			if i%500 == 0 {
				check()
			}
		}
		require.NoError(t, db.Compact(t.Context(), nil, nil)) // nothing comes and goes any more
		it, err := db.NewIter(nil)
		require.NoError(t, err)
		for ok := it.First(); ok; ok = it.Next() {
			_, err := db.Get(it.Key()) // a scan itself leaves little in the cache
			require.NoError(t, err)
		}
		require.NoError(t, it.Close())
		require.Greater(t, check(), db.opts.readersLimit()/2, "memory that is allowed is used")
		require.NotZero(t, db.Metrics().FilterMemory)
	}
}

func TestFiltersThatWouldTakeTooMuchStayOnDisk(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "lookups of one goroutine")
	db := openMem(t, &Options{MemoryLimit: 4 << 20, CacheSize: -1, MemtableSize: 1 << 20, TargetFileSize: 256 << 10,
		Filter: mustParse("bloom:64")})
	for i := range 100_000 {
		require.NoError(t, db.Set(settledKey(i), nil, Async))
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	for i := range 100_000 {
		ok, err := db.Has(settledKey(i))
		require.NoError(t, err)
		require.True(t, ok)
	}
	m := db.Metrics()
	require.NotZero(t, m.FiltersSkipped)
	require.Zero(t, m.UnusableFilters)
	require.LessOrEqual(t, m.FilterMemory, int64(512<<10))
	checkIdentities(t, m)
}

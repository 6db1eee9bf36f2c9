package kv

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMemoryLimitHoldsForAllParts(t *testing.T) {
	const limit = 8 << 20
	for _, o := range []*Options{
		{MemoryLimit: limit},
		{MemoryLimit: limit, MemtableSize: 1 << 20, MaxMemtables: 5},
		{MemoryLimit: limit, CacheSize: 1 << 30},
		{MemoryLimit: limit, MaxMemtables: 16},
	} {
		o.BlockSize = 512
		db := openMem(t, o)
		most := int64(0)
		check := func() {
			m := db.Metrics()
			used := m.CacheBytes + m.FilterMemory + m.IndexMemory + m.MemtableBytes
			most = max(most, used)
			require.LessOrEqual(t, used, int64(limit), "cache %d, filters %d, indexes %d, memtables %d", m.CacheBytes,
				m.FilterMemory, m.IndexMemory, m.MemtableBytes)
		}
		rng := rand.New(rand.NewPCG(3, 3))
		for i := range 30_000 {
			require.NoError(t, db.Set(fmt.Appendf(nil, "%08d", rng.IntN(1_000_000)), randomBytes(rng, 300), Async))
			_, err := db.Has(fmt.Appendf(nil, "%08d", rng.IntN(1_000_000)))
			require.NoError(t, err)
			if i%500 == 0 {
				check()
			}
		}
		it, err := db.NewIter(nil)
		require.NoError(t, err)
		for ok := it.First(); ok; ok = it.Next() {
		}
		require.NoError(t, it.Close())
		check()
		require.NotZero(t, db.Metrics().FilterMemory)
		require.Greater(t, most, int64(limit/4), "memory that is allowed is used")
	}
}

func TestFiltersThatWouldTakeTooMuchStayOnDisk(t *testing.T) {
	db := openMem(t, &Options{MemoryLimit: 4 << 20, CacheSize: -1, MemtableSize: 1 << 20, TargetFileSize: 256 << 10,
		Filter: mustParse("bloom:64")})
	for i := range 100_000 {
		require.NoError(t, db.Set(settledKey(i), nil, Async))
	}
	require.NoError(t, db.Compact(nil, nil))
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

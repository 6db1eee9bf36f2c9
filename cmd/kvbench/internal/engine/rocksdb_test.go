//go:build rocksdb

package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func openRocksDBVariant(t *testing.T, filter, dir string, s Settings, tree Tree) *rocksDBStore {
	t.Helper()
	variant, err := NewVariant(RocksDBName, filter, newValues(t))
	require.NoError(t, err)
	store, err := variant.Open(dir, s, tree)
	require.NoError(t, err)
	return store.(*rocksDBStore)
}

// TestRocksDBCountsWhatLookupsDo loads, settles and opens stores with every filter
// and compression, and holds its counters against the truth.
func TestRocksDBCountsWhatLookupsDo(t *testing.T) {
	v := newValues(t)
	const n = 5000
	for _, tc := range []struct {
		filter, compression string
		bits                float64
	}{
		{"none", "snappy", 0}, {"bloom:10", "none", 10}, {"bloom:10", "zstd", 10}, {"own:16", "snappy", 16},
		{"ribbon:10", "snappy", 7},
	} {
		t.Run(tc.filter+" "+tc.compression, func(t *testing.T) {
			dir, with := t.TempDir(), settings
			with.Compression = tc.compression
			s := openRocksDBVariant(t, tc.filter, dir, with, Tree{})
			fill(t, s, v, n)
			usage := s.Usage()
			require.Greater(t, usage.Written(), Count(n*50))
			require.Greater(t, usage.Logged, Count(n*100))
			require.NoError(t, s.Close())

			s = openRocksDBVariant(t, tc.filter, dir, with, Tree{})
			shape, err := s.Shape()
			require.NoError(t, err)
			require.True(t, shape.Settled(), "%+v", shape)
			total := shape.Total()
			require.EqualValues(t, n, total.Entries)
			require.Positive(t, total.IndexBytes)
			require.InDelta(t, tc.bits, total.BitsPerKey(), 0.6)

			existing := ask(t, s, v, Get, Existing, n)
			require.EqualValues(t, n, existing.Lookups)
			require.EqualValues(t, n, existing.Total.Answered)
			require.Zero(t, existing.MemtableAnswers)
			require.InDelta(t, n, float64(existing.Total.BlocksFromCache+existing.Total.BlocksFromDisk), n/100,
				"a key that separates two blocks may be looked for in both")
			require.Positive(t, existing.Total.BytesFromDisk)
			require.Zero(t, existing.Total.Negatives)
			absent := ask(t, s, v, Get, Absent, n-1)
			require.Zero(t, absent.Total.Answered)
			require.Zero(t, absent.Total.TruePositives)
			require.Zero(t, absent.Total.BytesFromDisk, "every block is in the cache")
			if tc.bits == 0 {
				require.Zero(t, existing.Total.FilterChecks)
				require.Zero(t, absent.Total.FilterChecks)
				require.GreaterOrEqual(t, absent.Total.BlocksFromCache, Count(n-1))
			} else {
				require.EqualValues(t, n, existing.Total.TruePositives)
				require.Equal(t, absent.Total.FilterChecks, absent.Total.Negatives+absent.Total.FalsePositives)
				require.GreaterOrEqual(t, absent.Total.BlocksFromCache, absent.Total.FalsePositives)
				require.InDelta(t, float64(absent.Total.FalsePositives), float64(absent.Total.BlocksFromCache), 10)
				require.InDelta(t, 0.01*n, float64(absent.Total.FalsePositives), 0.005*n+0.006*n)
			}
			_, err = s.NewReader(Iterator, Existing)
			require.ErrorContains(t, err, "no access")
			require.Positive(t, s.Usage().CacheMemory)
			require.NoError(t, s.Close())
		})
	}
}

// TestRocksDBHasThisBloomRate looks many absent keys up, twice as many as there are.
func TestRocksDBHasThisBloomRate(t *testing.T) {
	v := newValues(t)
	const n = 40_000
	s := openRocksDBVariant(t, "bloom:10", t.TempDir(), settings, Tree{})
	fill(t, s, v, n)
	absent := ask(t, s, v, Get, Absent, n-1).Total
	rate := float64(absent.FalsePositives) / float64(absent.FilterChecks)
	require.InDelta(t, rocksDBBloomRate, rate, 4*0.0005, "four standard deviations of as many probes")
	require.NoError(t, s.Close())
}

// TestRocksDBRestsWithLevels fills several levels and young files, twice with one
// result.
func TestRocksDBRestsWithLevels(t *testing.T) {
	v := newValues(t)
	const n = 4000
	var shapes []Shape
	for range 2 {
		s := openRocksDBVariant(t, "bloom:10", t.TempDir(), settings,
			Tree{FileBytes: 16 << 10, BaseLevelBytes: 16 << 10, YoungFiles: 3})
		fillLevels(t, s, v, n)
		shape, err := s.Shape()
		require.NoError(t, err)
		require.False(t, shape.Settled())
		require.GreaterOrEqual(t, len(shape.Levels), 2)
		require.Equal(t, 0, shape.Levels[0].Level)
		require.LessOrEqual(t, shape.Levels[0].Files, 3)
		require.Equal(t, shape.Levels[0].Files, shape.Levels[0].Runs)
		for i := range shape.Levels {
			shape.Levels[i].Bytes = 0 // of a file's properties the time is one
		}
		shapes = append(shapes, shape)
		ask(t, s, v, Get, Existing, n)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, s.Rest(ctx), context.Canceled)
		require.NoError(t, s.Close())
	}
	require.Equal(t, shapes[0], shapes[1])
}

func TestRocksDBRefusesWhatItLacks(t *testing.T) {
	v := newValues(t)
	for _, filter := range []string{"blocked:10", "cuckoo:12", "oracle", "bloom:rate=0.01"} {
		variant, err := NewVariant(RocksDBName, filter, v)
		if filter == "bloom:rate=0.01" { // which is bits by the time it gets here
			require.NoError(t, err)
			require.Contains(t, variant.Filter, "bloom:9.")
			continue
		}
		require.ErrorIs(t, err, ErrUnsupported, filter)
	}
	variant, err := NewVariant(RocksDBName, "own:10", v)
	require.NoError(t, err)
	require.Equal(t, "bloom:10", variant.Filter)
	require.Nil(t, variant.Policy)
	require.False(t, CanSpread(variant.Policy))
	bits, rate, ok := variant.Expected(10_000)
	require.True(t, ok)
	require.InDelta(t, 10, bits, 0)
	require.InDelta(t, rocksDBBloomRate, rate, 0)
	_, _, ok = variant.Expected(300)
	require.False(t, ok, "rounding to whole lines adds bits to small filters")
	_, err = variant.Open(t.TempDir(), settings, Tree{FilterBudgetBytes: 1})
	require.ErrorIs(t, err, ErrUnsupported)
	_, err = Open(RocksDBName, "/dev/null/nothing", settings)
	require.ErrorContains(t, err, "open /dev/null/nothing")
	require.NoError(t, CheckTree(RocksDBName, Tree{Compaction: CompactionStyles[0], YoungFiles: 2}))
	require.ErrorIs(t, CheckTree(RocksDBName, Tree{Compaction: "tiered"}), ErrUnsupported)
}

package kv

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
)

// settledStore returns a store of n keys in the last level, all blocks cached.
func settledStore(tb testing.TB, n int, o *Options) *DB {
	tb.Helper()
	db := openMem(tb, o)
	for i := range n {
		storetest.Fine(tb, db.Set(settledKey(i), bytes.Repeat([]byte{byte(i)}, 50), Async))
	}
	require.NoError(tb, db.Compact(tb.Context(), nil, nil))
	for i := range n {
		ok, err := db.Has(settledKey(i))
		storetest.Fine(tb, err)
		require.True(tb, ok)
	}
	return db
}

func settledKey(i int) []byte { return fmt.Appendf(nil, "key/%06d", i) }

func TestCachedLookupsDoNotAllocate(t *testing.T) {
	for _, tombstones := range []bool{false, true} {
		db := settledStore(t, 5000, nil)
		if tombstones {
			require.NoError(t, db.DeleteRange([]byte("key/004000"), []byte("key/004010"), nil))
		}
		present, deleted, absent := settledKey(1234), settledKey(4005), []byte("key/001234x")
		dst := make([]byte, 0, 100)
		require.Zero(t, testing.AllocsPerRun(500, func() {
			got, err := db.AppendGet(dst, present)
			if err != nil || len(got) != 50 {
				t.Fail()
			}
			if _, err := db.AppendGet(dst, absent); !errors.Is(err, ErrNotFound) {
				t.Fail()
			}
			if ok, err := db.Has(present); !ok || err != nil {
				t.Fail()
			}
			if ok, err := db.Has(absent); ok || err != nil {
				t.Fail()
			}
			if ok, err := db.Has(deleted); ok != !tombstones || err != nil {
				t.Fail()
			}
		}), "tombstones: %t", tombstones)
	}
}

// Filters are asked before the index, and in the last level too.
func TestAbsentKeysStopAtTheFilter(t *testing.T) {
	t.Parallel()
	db := settledStore(t, 20_000, nil)
	before := db.Metrics()
	require.NotZero(t, before.Levels[lastLevel].Files)
	const lookups = 10_000
	for i := range lookups {
		ok, err := db.Has(append(settledKey(i), 'x')) // between two keys
		require.NoError(t, err)
		require.False(t, ok)
	}
	m := db.Metrics().Sub(before)
	c := m.Levels[lastLevel].Lookup
	require.EqualValues(t, lookups, m.Gets)
	require.EqualValues(t, lookups, c.FilesConsidered-c.RuledOutByBounds)
	require.Equal(t, c.FilesConsidered-c.RuledOutByBounds, c.FilterChecks())
	require.Zero(t, c.Unfiltered)
	require.Less(t, c.IndexLookups, uint64(lookups*2/100), "about 1 % false positives")
	require.Equal(t, c.FilterFalsePositives, c.IndexLookups)
	require.Zero(t, c.Hits+c.FilterTruePositives)
	require.Less(t, c.FalsePositiveRate(), 0.02)
	checkIdentities(t, m)
}

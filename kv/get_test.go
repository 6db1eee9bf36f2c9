package kv

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
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

// If a manifest lists no blob file at all, handles lead nowhere: that is damage, however a key is looked up, and
// never an absent key.
func TestHandlesOfAStoreWithoutBlobFilesAreDamage(t *testing.T) {
	fsys := vfs.NewMem()
	db, err := Open("db", &Options{harness: harness.Harness{FS: fsys}, SeparateFrom: 100})
	require.NoError(t, err)
	var keys [][]byte
	for i := range 20 {
		keys = append(keys, fmt.Appendf(nil, "%03d", i))
		require.NoError(t, db.Set(keys[i], bytes.Repeat(keys[i], 100), NoSync))
	}
	require.NoError(t, db.Flush(t.Context()))
	e := db.snapshotEdit(db.installed())
	e.NextFile, e.LogNum = e.NextFile+1, 0
	require.NotEmpty(t, e.AddedBlobs)
	e.AddedBlobs = nil
	for i := range e.Added {
		e.Added[i].Table.Blobs = nil
	}
	require.NoError(t, db.Close())
	m, err := manifest.Create(fsys, "db", e.NextFile-1, e)
	require.NoError(t, err)
	require.NoError(t, m.Close())
	db, err = Open("db", &Options{harness: harness.Harness{FS: fsys}, ReadOnly: true})
	require.NoError(t, err)
	_, err = db.Get(keys[0])
	require.ErrorIs(t, err, ErrCorruption)
	require.ErrorContains(t, err, ".blob")
	_, err = db.GetReader(keys[0])
	require.ErrorIs(t, err, ErrCorruption)
	for _, n := range []int{2, 20} {
		_, err = db.MultiGet(keys[:n])
		require.ErrorIs(t, err, ErrCorruption, "%d keys", n)
	}
	it, err := db.NewIter(nil)
	require.NoError(t, err)
	require.False(t, it.First())
	require.ErrorIs(t, it.Error(), ErrCorruption)
	require.ErrorContains(t, it.Error(), `"000"`)
	require.ErrorIs(t, it.Close(), ErrCorruption)
	require.NoError(t, db.Close())
}

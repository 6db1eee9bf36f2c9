package kv

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/version"
)

// TestDeleteRangeOfOneKeyEach deletes many ranges, with a lookup after each: none of that is
// a reason to flush.
func TestDeleteRangeOfOneKeyEach(t *testing.T) {
	t.Parallel()
	const n = 10_000
	db := openMem(t, nil)
	setEach(t, db, 0, n, nil)
	for i := range n {
		require.NoError(t, db.DeleteRange(tombKey(i), tombKey(i+1), Async))
		for _, k := range []int{0, i, i + 1} {
			ok, err := db.Has(tombKey(k))
			require.NoError(t, err)
			require.Equal(t, k > i && k < n, ok, k)
		}
	}
	m := db.Metrics()
	require.Zero(t, m.Flushes)
	require.Zero(t, m.Stalls)
	require.Zero(t, m.Slowdowns)
	require.NoError(t, db.Flush(t.Context()))
	require.Empty(t, contents(t, db, nil))
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.Empty(t, contents(t, db, nil))
	require.Zero(t, db.Metrics().Levels[lastLevel].Files)
}

// TestDeleteRangeFillsMemory deletes ranges until their bytes fill a memtable, which is then
// flushed.
func TestDeleteRangeFillsMemory(t *testing.T) {
	t.Parallel()
	db := openMem(t, &Options{MemtableSize: 1 << 20})
	for i := range 5000 {
		require.NoError(t, db.DeleteRange(tombKey(2*i), tombKey(2*i+1), Async))
		require.LessOrEqual(t, db.Metrics().MemtableBytes, int64(4<<20))
	}
	require.NoError(t, db.Flush(t.Context()))
	db.settle() // all flushes are counted
	require.Greater(t, db.Metrics().Flushes, uint64(1))
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestDeleteRangeManyThenReadAfterFlush reads for the first time after a flush, in a store
// with many range tombstones in several levels: the work of that must not grow with
// their number. A set of all of them would be allocated.
func TestDeleteRangeManyThenReadAfterFlush(t *testing.T) {
	scale.OneGoroutine(t, "lookups of one goroutine")
	const n = 20_000
	db, snapshot := openManyTombstones(t, n)
	tables := 0
	db.installed().All(func(_ int, tb *version.Table) {
		if tb.RangeDeletes > 0 {
			tables++
		}
	})
	require.Greater(t, tables, 4)
	get := func(reader interface {
		Get(key []byte) ([]byte, error)
	}) {
		for i := range 100 {
			i := i * (2 * n / 100)
			_, err := reader.Get(tombKey(i))
			require.Equal(t, reader == any(db), errors.Is(err, ErrNotFound))
			_, err = reader.Get(tombKey(i + 1))
			require.NoError(t, err)
		}
	}
	get(db) // the tables are open, and some blocks in the cache
	get(snapshot)
	for round := range 3 {
		if round == 2 {
			require.NoError(t, db.DeleteRange(tombKey(2*n), tombKey(2*n+1), Async))
		}
		require.NoError(t, db.Set([]byte("other"), nil, Async))
		require.NoError(t, db.Flush(t.Context()))
		const bound = 512 << 10 // 400 lookups, with their values and what require makes
		require.Less(t, allocated(func() { get(db); get(snapshot) }), uint64(bound))
		require.Less(t, allocated(func() {
			it, err := db.NewIter(nil)
			require.NoError(t, err)
			require.True(t, it.SeekGE(tombKey(n)))
			require.Equal(t, tombKey(n+1), it.Key())
			require.True(t, it.Prev())
			require.NoError(t, it.Close())
		}), uint64(bound))
	}
	require.NoError(t, snapshot.Close())
	require.NoError(t, db.Close())
}

// TestNestedRangeDeletesStaySmall deletes overlapping ranges, in one batch and one
// by one: what they take must not grow with the square of their number.
func TestNestedRangeDeletesStaySmall(t *testing.T) {
	const n = 5000
	db, err := Open("", &Options{InMemory: true})
	require.NoError(t, err)
	defer db.Close()
	b := db.NewBatch()
	for i := range n {
		require.NoError(t, b.DeleteRange(nil, fmt.Appendf(nil, "k%05d", i)))
		require.NoError(t, b.Set(fmt.Appendf(nil, "k%05d", i), nil))
	}
	require.NoError(t, b.Commit(Async))
	for i := range 600 {
		require.NoError(t, db.DeleteRange(nil, fmt.Appendf(nil, "k%05d", i), Async))
		ok, err := db.Has(fmt.Appendf(nil, "k%05d", i))
		require.NoError(t, err)
		require.False(t, ok, "an earlier range of the batch came after the key")
	}
	ok, err := db.Has(fmt.Appendf(nil, "k%05d", n-1))
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, db.Flush(t.Context()))
	db.waitForBackground()
	var fragments uint64
	db.installed().All(func(_ int, tb *version.Table) { fragments += tb.RangeDeletes })
	require.Less(t, fragments, uint64(3*n))
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.EqualValues(t, 1, db.Metrics().Levels[lastLevel].Entries)
}

func TestDeleteRangeBounds(t *testing.T) {
	t.Parallel()
	all := storetest.Model{"": "0", "a": "1", "b": "2", "c": "3", "c\x00": "4"}
	for _, c := range []struct {
		lo, hi []byte
		left   []string
	}{
		{nil, nil, nil},
		{[]byte{}, nil, nil},
		{nil, []byte{}, []string{"", "a", "b", "c", "c\x00"}},
		{nil, []byte("b"), []string{"b", "c", "c\x00"}},
		{[]byte("b"), nil, []string{"", "a"}},
		{[]byte("a"), []byte("c"), []string{"", "c", "c\x00"}},
		{[]byte("a"), []byte("c\x00"), []string{"", "c\x00"}},
		{[]byte("c"), []byte("a"), []string{"", "a", "b", "c", "c\x00"}},
	} {
		want := storetest.Model{}
		for _, k := range c.left {
			want[k] = all[k]
		}
		for where := range 4 { // the keys and the tombstone in memory, then on disk, then merged
			db := openMem(t, nil)
			for k, v := range all {
				set(t, db, k, v)
			}
			if where >= 1 {
				require.NoError(t, db.Flush(t.Context()))
			}
			snapshot := db.NewSnapshot()
			require.NoError(t, db.DeleteRange(c.lo, c.hi, nil))
			if where >= 2 {
				require.NoError(t, db.Flush(t.Context()))
			}
			if where >= 3 {
				require.NoError(t, db.Compact(t.Context(), nil, nil))
			}
			requireContents(t, want, db)
			requireContents(t, all, snapshot)
			for k := range all {
				_, live := want[k]
				ok, err := db.Has([]byte(k))
				require.NoError(t, err)
				require.Equal(t, live, ok, "%q after [%q, %q)", k, c.lo, c.hi)
			}
			require.NoError(t, snapshot.Close())
		}
	}
}

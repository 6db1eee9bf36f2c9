package kv

import (
	"fmt"
	"testing"

	"github.com/siftkv/siftkv/internal/version"
	"github.com/stretchr/testify/require"
)

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
	require.NoError(t, db.Flush())
	db.waitForBackground()
	var fragments uint64
	db.current.All(func(_ int, tb *version.Table) { fragments += tb.RangeDeletes })
	require.Less(t, fragments, uint64(3*n))
	require.NoError(t, db.Compact(nil, nil))
	require.EqualValues(t, 1, db.Metrics().Levels[lastLevel].Entries)
}

func TestDeleteRangeBounds(t *testing.T) {
	all := model{"": "0", "a": "1", "b": "2", "c": "3", "c\x00": "4"}
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
		want := model{}
		for _, k := range c.left {
			want[k] = all[k]
		}
		for where := range 4 { // the keys and the tombstone in memory, then on disk, then merged
			db := openMem(t, nil)
			for k, v := range all {
				set(t, db, k, v)
			}
			if where >= 1 {
				require.NoError(t, db.Flush())
			}
			snapshot := db.NewSnapshot()
			require.NoError(t, db.DeleteRange(c.lo, c.hi, nil))
			if where >= 2 {
				require.NoError(t, db.Flush())
			}
			if where >= 3 {
				require.NoError(t, db.Compact(nil, nil))
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

package kv

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
)

func TestEmptyKeysAndValues(t *testing.T) {
	db := openMem(t, nil)
	check := func() {
		for _, k := range []string{"", "empty"} {
			v, err := db.Get([]byte(k))
			require.NoError(t, err)
			require.NotNil(t, v, "an empty value is not a missing one")
			require.Empty(t, v)
			ok, err := db.Has([]byte(k))
			require.NoError(t, err)
			require.True(t, ok)
		}
		v, err := db.Get([]byte("missing"))
		require.ErrorIs(t, err, ErrNotFound)
		require.Nil(t, v)
		dst, err := db.AppendGet([]byte("kept"), []byte("missing"))
		require.ErrorIs(t, err, ErrNotFound)
		require.Equal(t, "kept", string(dst))
		requireContents(t, storetest.Model{"": "", "empty": ""}, db)
	}
	require.NoError(t, db.Set(nil, nil, nil))
	require.NoError(t, db.Set([]byte("empty"), []byte{}, nil))
	check()
	require.NoError(t, db.Flush(t.Context()))
	check()
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	check()
	require.NoError(t, db.Delete([]byte{}, nil))
	requireContents(t, storetest.Model{"empty": ""}, db)
}

func TestIteratorBounds(t *testing.T) {
	db := openMem(t, nil)
	for _, k := range []string{"", "a", "b", "c"} {
		set(t, db, k, k)
	}
	for _, c := range []struct {
		lo, hi []byte
		want   string
	}{
		{nil, nil, "[ a b c]"},
		{[]byte{}, nil, "[ a b c]"},
		{[]byte{0}, nil, "[a b c]"},
		{nil, []byte{}, "[]"},
		{nil, []byte("b"), "[ a]"},
		{[]byte("a"), []byte("b"), "[a]"},
		{[]byte("b"), []byte("a"), "[]"},
	} {
		lo, hi := bytes.Clone(c.lo), bytes.Clone(c.hi)
		it, err := db.NewIter(&IterOptions{LowerBound: lo, UpperBound: hi})
		require.NoError(t, err)
		for i := range lo { // the bounds were copied
			lo[i] = 'z'
		}
		var forward, backward []string
		for ok := it.First(); ok; ok = it.Next() {
			forward = append(forward, string(it.Key()))
		}
		for ok := it.Last(); ok; ok = it.Prev() {
			backward = append([]string{string(it.Key())}, backward...)
		}
		require.Equal(t, c.want, fmt.Sprint(forward))
		require.Equal(t, forward, backward)
		require.Nil(t, it.Key(), "it is on no entry")
		require.Nil(t, it.Value())
		require.False(t, it.Next() || it.Prev(), "it stays there")
		require.NoError(t, it.Close())
	}
}

func TestSlicesAreCopied(t *testing.T) {
	db := openMem(t, nil)
	k, v := []byte("key"), []byte("value")
	require.NoError(t, db.Set(k, v, nil))
	b := db.NewBatch()
	lo := []byte("x")
	require.NoError(t, b.DeleteRange(lo, []byte("y")))
	lo[0], k[0], v[0] = 'a', 'X', 'X'
	require.NoError(t, b.Commit(nil))
	for range 2 {
		got, err := db.Get([]byte("key"))
		require.NoError(t, err)
		require.Equal(t, "value", string(got))
		clear(got) // it is ours
		dst, err := db.AppendGet([]byte("the "), []byte("key"))
		require.NoError(t, err)
		require.Equal(t, "the value", string(dst))
		clear(dst)
		require.NoError(t, db.Compact(t.Context(), nil, nil))
	}
}

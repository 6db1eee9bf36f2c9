package kv

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/sstable"
)

// Steps within one table, and the changes from one to another: a store without range
// tombstones, where iterators take them, whose tables and memtables take turns, end one
// after the other, and hold versions, tombstones, operands and values of all lengths of the same keys.
func TestIteratorsStepFromTableToTable(t *testing.T) {
	t.Parallel()
	property.Check(t, func(t *rapid.T) {
		o := &Options{InMemory: true, BlockSize: rapid.IntRange(64, 1024).Draw(t, "block"), Merger: modelMerger,
			Compression: sstable.NoCompression, CacheSize: rapid.SampledFrom([]int64{-1, 64 << 10}).Draw(t, "cache")}
		db, err := Open("", o)
		require.NoError(t, err)
		m := storetest.Model{}
		shape := rapid.SampledFrom([]string{"%d", "%04d", "a common beginning %04d", "%04d and a long end"}).
			Draw(t, "shape")
		for range rapid.IntRange(1, 5).Draw(t, "tables") {
			writeTable(t, db, m, shape)
		}
		// As of here, and beside what is written later.
		s := db.NewSnapshot()
		past := m.Keys()
		values := maps.Clone(m)
		if rapid.Bool().Draw(t, "more") {
			writeTable(t, db, m, shape)
		}
		walkTables(t, s, past, values)
		walkTables(t, db, m.Keys(), m)
		require.NoError(t, s.Close())
		require.NoError(t, db.Close())
	})
}

// writeTable writes a run of neighbouring keys, a comb of keys, or some at random, and makes a table of
// level 0 of them, or of all there is one sorted run, or leaves them in the memtable.
func writeTable(t *rapid.T, db *DB, m storetest.Model, shape string) {
	first, step := rapid.IntRange(0, 150).Draw(t, "first"), rapid.IntRange(1, 12).Draw(t, "step")
	n := rapid.IntRange(1, 60).Draw(t, "keys")
	deletes := rapid.SampledFrom([]int{0, 0, 9, 10}).Draw(t, "of ten at least") // in stretches
	for i := range n {
		key := fmt.Appendf(nil, shape, first+i*step)
		if i%5 == 0 { // another version of the key, which the table keeps for a snapshot
			require.NoError(t, db.Set(key, []byte("older"), NoSync))
			s := db.NewSnapshot()
			defer func() { require.NoError(t, s.Close()) }()
			m.Set(string(key), "older")
		}
		switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
		case kind == 0 || kind >= 10-deletes:
			require.NoError(t, db.Delete(key, NoSync))
			m.Delete(string(key))
		case kind == 1:
			require.NoError(t, db.Merge(key, []byte("+"), NoSync))
			m.Merge(string(key), "+")
		default:
			value := strings.Repeat(string(key[:1]), rapid.SampledFrom([]int{0, 9, 127, 128, 300}).Draw(t, "length"))
			require.NoError(t, db.Set(key, []byte(value), NoSync))
			m.Set(string(key), value)
		}
	}
	switch rapid.IntRange(0, 3).Draw(t, "then") {
	case 0, 1:
		require.NoError(t, db.Flush(t.Context()))
	case 2:
		require.NoError(t, db.Compact(t.Context(), nil, nil))
	}
}

// walkTables moves an iterator at random and holds it against the keys and values that there are.
func walkTables(t *rapid.T, r Reader, keys []string, values map[string]string) {
	var o IterOptions
	if rapid.Bool().Draw(t, "bounded") {
		o.LowerBound = fmt.Appendf(nil, "%d", rapid.IntRange(0, 400).Draw(t, "lower"))
		o.UpperBound = fmt.Appendf(nil, "%04d", rapid.IntRange(0, 400).Draw(t, "upper"))
		keys = slices.DeleteFunc(slices.Clone(keys), func(k string) bool {
			return k < string(o.LowerBound) || k >= string(o.UpperBound)
		})
	}
	o.KeysOnly = rapid.Bool().Draw(t, "keys only")
	it, err := r.NewIter(&o)
	require.NoError(t, err)
	at := -1 // in keys
	for range rapid.IntRange(1, 40).Draw(t, "moves") {
		var ok bool
		seek := fmt.Appendf(nil, "%04d", rapid.IntRange(0, 500).Draw(t, "seek"))
		place, _ := slices.BinarySearch(keys, string(seek))
		switch rapid.IntRange(0, 11).Draw(t, "move") {
		case 0:
			ok, at = it.SeekGE(seek), place
		case 1:
			ok, at = it.SeekLT(seek), place-1
		case 2:
			ok, at = it.First(), 0
		case 3:
			ok, at = it.Last(), len(keys)-1
		case 4, 5:
			if ok = it.Prev(); at >= 0 && at < len(keys) {
				at--
			}
		default:
			if ok = it.Next(); at >= 0 && at < len(keys) {
				at++
			}
		}
		require.NoError(t, it.Error())
		require.Equal(t, at >= 0 && at < len(keys), ok)
		require.Equal(t, ok, it.Valid())
		if !ok {
			at = -1
			continue
		}
		require.Equal(t, keys[at], string(it.Key()))
		storetest.RequireValueOf(t, it, o.KeysOnly, values[keys[at]], true)
	}
	require.NoError(t, it.Close())
	require.False(t, it.Next(), "closed")
	require.Nil(t, it.Key())
	require.False(t, it.SeekGE(nil))
	require.ErrorIs(t, it.Error(), ErrClosed)
}

// A closed iterator stays closed, whoever uses what it was made of.
func TestAClosedIteratorStaysClosed(t *testing.T) {
	db, err := Open("", &Options{InMemory: true})
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("a"), []byte("1"), NoSync))
	old, err := db.NewIter(&IterOptions{UpperBound: []byte{}})
	require.NoError(t, err)
	require.False(t, old.First(), "an empty bound is one")
	require.NoError(t, old.Close())
	for range 100 {
		it, err := db.NewIter(nil)
		require.NoError(t, err)
		require.True(t, it.First())
		require.False(t, old.Valid())
		require.False(t, old.Next())
		require.NoError(t, old.Close())
		require.True(t, it.Valid() && bytes.Equal(it.Key(), []byte("a")))
		require.NoError(t, it.Close())
	}
	require.NoError(t, db.Close())
}

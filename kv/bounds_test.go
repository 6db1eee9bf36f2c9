package kv

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/siftkv/siftkv/sstable"
	"github.com/stretchr/testify/require"
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
		requireContents(t, model{"": "", "empty": ""}, db)
	}
	require.NoError(t, db.Set(nil, nil, nil))
	require.NoError(t, db.Set([]byte("empty"), []byte{}, nil))
	check()
	require.NoError(t, db.Flush())
	check()
	require.NoError(t, db.Compact(nil, nil))
	check()
	require.NoError(t, db.Delete([]byte{}, nil))
	requireContents(t, model{"empty": ""}, db)
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
		require.NoError(t, db.Compact(nil, nil))
	}
}

// settledStore returns a store of n keys in the last level, all blocks cached.
func settledStore(tb testing.TB, n int, o *Options) *DB {
	tb.Helper()
	db := openMem(tb, o)
	for i := range n {
		require.NoError(tb, db.Set(settledKey(i), bytes.Repeat([]byte{byte(i)}, 50), Async))
	}
	require.NoError(tb, db.Compact(nil, nil))
	for i := range n {
		ok, err := db.Has(settledKey(i))
		require.NoError(tb, err)
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

// TestMetricsOfPresentKeys counts what lookups of keys that are there cost.
func TestMetricsOfPresentKeys(t *testing.T) {
	db := settledStore(t, 5000, nil)
	before := db.Metrics()
	for i := range 5000 {
		_, err := db.Get(settledKey(i))
		require.NoError(t, err)
	}
	m := db.Metrics().Sub(before)
	c := m.Lookup()
	require.EqualValues(t, 5000, c.Hits)
	require.EqualValues(t, 5000, c.FilterTruePositives)
	require.EqualValues(t, 5000, c.BlocksFromCache)
	require.Zero(t, c.BlocksFromDisk+c.BytesFromDisk+c.FilterFalsePositives+m.MemtableHits)
	require.EqualValues(t, 5000, m.Levels[lastLevel].Entries)
	checkIdentities(t, m)
	require.EqualValues(t, 5000, m.Writes)
	set(t, db, "key/new", "1")
	_, err := db.Get([]byte("key/new"))
	require.NoError(t, err)
	require.EqualValues(t, 1, db.Metrics().Sub(m).MemtableHits-before.MemtableHits)
}

func TestExplainTellsEveryStep(t *testing.T) {
	db := openMem(t, &Options{L0CompactionThreshold: 50, Compression: sstable.NoCompression})
	fill := func(value string, keys ...string) string {
		for _, k := range keys {
			set(t, db, k, value)
		}
		require.NoError(t, db.Flush())
		s := db.acquire(0)
		defer db.release(s, 0)
		return s.version.Levels[0].Tables[0].Name()
	}
	for i := range 1000 {
		set(t, db, fmt.Sprintf("k%03d", i), "bottom")
	}
	require.NoError(t, db.Compact(nil, nil))
	s := db.acquire(0)
	bottom := s.version.Levels[lastLevel].Tables[0].Name()
	db.release(s, 0)
	narrow := fill("narrow", "k100", "k200")
	wide := fill("wide", "k000", "k500", "k999")
	set(t, db, "k300", "memory")

	explain := func(key string) *Explanation {
		e, err := db.Explain([]byte(key))
		require.NoError(t, err)
		ok, err := db.Has([]byte(key))
		require.NoError(t, err)
		require.Equal(t, ok, e.Found)
		return e
	}
	steps := func(e *Explanation) (s []string) {
		for _, step := range e.Steps {
			s = append(s, fmt.Sprintf("%d %s %s", step.Level, step.Source, step.Verdict))
		}
		return s
	}
	require.Equal(t, []string{"-1 memtable present"}, steps(explain("k300")))
	require.Equal(t, []string{"-1 memtable absent", "0 " + wide + " present"}, steps(explain("k500")))
	require.Equal(t, []string{"-1 memtable absent", "0 " + wide + " filter", "0 " + narrow + " present"},
		steps(explain("k200")))
	e := explain("k700")
	require.Equal(t, []string{"-1 memtable absent", "0 " + wide + " filter", "0 " + narrow + " bounds",
		"6 " + bottom + " present"}, steps(e))
	require.True(t, e.Steps[3].Probe.IndexLookup)
	require.False(t, e.Steps[1].Probe.IndexLookup, "the filter comes first")
	cached, read := 0, 0
	for _, s := range e.Steps {
		cached += s.Probe.BlocksFromCache
		read += s.Probe.BlocksFromDisk
	}
	require.Equal(t, 1, cached+read)
	require.Contains(t, e.String(), "L6 "+bottom)
	require.Contains(t, e.String(), "ruled out by filter")
	require.Equal(t, []string{"-1 memtable absent", "0 " + wide + " bounds", "0 " + narrow + " bounds",
		"6 " + bottom + " bounds"}, steps(explain("a")))

	require.NoError(t, db.DeleteRange([]byte("k600"), []byte("k800"), nil))
	e = explain("k700")
	require.NotZero(t, e.CoveredBy)
	require.Equal(t, "6 "+bottom+" range tombstone", steps(e)[len(e.Steps)-1])
	require.Contains(t, e.String(), "range tombstone")
}

func TestACheckpointIsTheStoreAtThatTime(t *testing.T) {
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "nested", "checkpoint")
	db := openDir(t, dir, &Options{MemtableSize: 64 << 10, TargetFileSize: 16 << 10, BaseLevelSize: 16 << 10})
	rng := rand.New(rand.NewPCG(6, 6))
	m := model{}
	write := func(n int) {
		for range n {
			k, v := fmt.Sprintf("%04d", rng.IntN(2000)), string(randomBytes(rng, 200))
			m[k] = v
			set(t, db, k, v)
		}
	}
	write(2000)
	require.NoError(t, db.Checkpoint(copied))
	then := maps.Clone(m)
	require.Error(t, db.Checkpoint(copied), "it is not empty")
	write(2000)
	require.NoError(t, db.DeleteRange(nil, []byte("1000"), nil))
	m.deleteRange(nil, []byte("1000"))
	require.NoError(t, db.Compact(nil, nil))
	requireContents(t, m, db)

	c := openDir(t, copied, &Options{ReadOnly: true}) // while the store is open
	requireContents(t, then, c)
	require.NoError(t, c.Close())
	c = openDir(t, copied, nil)
	set(t, c, "only here", "")
	require.NoError(t, c.DeleteRange([]byte("1000"), nil, nil))
	require.NoError(t, c.Compact(nil, nil))
	require.NoError(t, c.Close())
	requireContents(t, m, db)
	require.NoError(t, db.Close())
	require.NoError(t, Verify(dir, &bytes.Buffer{}))
	require.NoError(t, Verify(copied, &bytes.Buffer{}))
}

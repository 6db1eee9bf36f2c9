package kv

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
)

// manyVersions is how many versions of a key are more than an iterator passes one by one.
const manyVersions = 16

// walkBoth compares what an iterator comes to in both directions, and where it gets from
// every entry when it turns round, with a model.
func walkBoth(t *testing.T, db Reader, m storetest.Model) {
	t.Helper()
	it, err := db.NewIter(nil)
	require.NoError(t, err)
	keys := m.Keys()
	at := func(ok bool, n int) {
		t.Helper()
		require.NoError(t, it.Error())
		require.Equal(t, n >= 0 && n < len(keys), ok)
		if ok {
			require.Equal(t, keys[n], string(it.Key()))
			require.Equal(t, m[keys[n]], string(it.Value()))
		}
	}
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		at(ok, n)
		n++
	}
	require.Equal(t, len(keys), n)
	for ok := it.Last(); ok; ok = it.Prev() {
		n--
		at(ok, n)
	}
	require.Zero(t, n)
	for n, k := range keys {
		at(it.SeekGE([]byte(k)), n)
		at(it.Prev(), n-1)
		at(it.SeekLT([]byte(k)), n-1)
		if n > 0 {
			at(it.Next(), n)
			at(it.Prev(), n-1)
		}
	}
	require.NoError(t, it.Close())
}

// Few keys with many versions each, in memtables and in the blocks of tables, beside keys
// with one: of all kinds, seen by snapshots of every age.
func TestManyVersionsOfAKey(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "lookups of one goroutine")
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 77))
		db, err := Open("", &Options{InMemory: true, BlockSize: 64 + rng.IntN(500),
			L0CompactionThreshold: 3 + rng.IntN(6), Merger: modelMerger,
			MemtableSize: 64 << 10, TargetFileSize: 16 << 10})
		require.NoError(t, err)
		m := storetest.Model{}
		var snaps []*Snapshot
		var models []storetest.Model
		for i := range 600 {
			k := fmt.Sprintf("k%d", rng.IntN(6))
			if rng.IntN(10) == 0 {
				k = fmt.Sprintf("k%d/%d", rng.IntN(6), i)
			}
			switch n := rng.IntN(20); {
			case n < 12:
				v := strconv.Itoa(i)
				require.NoError(t, db.Set([]byte(k), []byte(v), Async))
				m.Set(k, v)
			case n < 15:
				require.NoError(t, db.Delete([]byte(k), Async))
				m.Delete(k)
			case n < 18:
				v := fmt.Sprintf("+%d", i)
				require.NoError(t, db.Merge([]byte(k), []byte(v), Async))
				m.Merge(k, v)
			case rng.IntN(10) == 0:
				lo, hi := []byte(k), []byte(k+"0")
				require.NoError(t, db.DeleteRange(lo, hi, Async))
				m.DeleteRange(lo, hi)
			}
			switch n := rng.IntN(100); {
			case n < 4:
				snaps, models = append(snaps, db.NewSnapshot()), append(models, maps.Clone(m))
			case n < 6:
				require.NoError(t, db.Flush(t.Context()))
			}
		}
		walkBoth(t, db, m)
		for i, s := range snaps {
			walkBoth(t, s, models[i])
		}
		tx, err := db.Begin(true)
		require.NoError(t, err)
		own := maps.Clone(m)
		var early *Iterator
		var seen storetest.Model
		for i := range 100 {
			k := fmt.Sprintf("k%d", rng.IntN(3))
			require.NoError(t, tx.Set([]byte(k), fmt.Appendf(nil, "own %d", i)))
			own.Set(k, fmt.Sprintf("own %d", i))
			if i == 50 {
				it, err := tx.NewIter(nil) // sees no later write
				require.NoError(t, err)
				early, seen = it, maps.Clone(own)
			}
		}
		n := 0
		for ok := early.First(); ok; ok = early.Next() {
			require.Equal(t, seen.Keys()[n], string(early.Key()))
			require.Equal(t, seen[string(early.Key())], string(early.Value()))
			n++
		}
		require.Len(t, seen, n)
		require.NoError(t, early.Close())
		walkBoth(t, tx, own)
		require.NoError(t, tx.Discard())
		for _, s := range snaps {
			require.NoError(t, s.Close())
		}
		require.NoError(t, db.Close())
	}
}

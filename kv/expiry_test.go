package kv

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/operand"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
)

func requireAbsent(tb testing.TB, db Reader, key string) {
	tb.Helper()
	_, err := db.Get([]byte(key))
	require.ErrorIs(tb, err, ErrNotFound)
	ok, err := db.Has([]byte(key))
	require.NoError(tb, err)
	require.False(tb, ok)
}

// A value is there until the very microsecond in which it ends, wherever it is stored.
func TestAValueEndsOnTime(t *testing.T) {
	clock := &storetest.Clock{}
	db := openMem(t, &Options{Clock: clock.Time, L0CompactionThreshold: 50})
	set(t, db, "k", "older: it stays hidden")
	// so that no file is mostly waste when k has expired, and compacted while the clock goes back
	others := storetest.Model{}
	for i := range 8 {
		others.Set(fmt.Sprint("a", i), "stays")
	}
	all := maps.Clone(others)
	all.Set("k", "v")
	onEveryStage(t, db, func(string) {
		for k, v := range others {
			set(t, db, k, v)
		}
		require.NoError(t, db.SetTTL([]byte("k"), []byte("v"), time.Second, nil))
		clock.Advance(time.Second - time.Microsecond)
	}, func(stage string) {
		s := db.NewSnapshot()
		it, err := db.NewIter(nil)
		require.NoError(t, err)
		requireContents(t, all, db)
		requireContents(t, all, s)
		clock.Advance(time.Microsecond)
		for _, r := range []Reader{db, s} {
			requireAbsent(t, r, "k")
			requireContents(t, others, r)
		}
		require.False(t, it.SeekGE([]byte("k")), "an iterator asks the clock when it comes to a value")
		require.True(t, it.Last())
		require.Equal(t, "a7", string(it.Key()))
		require.NoError(t, it.Close())
		require.NoError(t, s.Close())
		clock.Advance(-time.Microsecond)
	})
	clock.Advance(time.Microsecond)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.EqualValues(t, len(others), db.Metrics().Levels[lastLevel].Entries, "not even what was hidden is left")
	require.NotZero(t, db.Metrics().ExpiredDropped)
}

func TestBoundsOfATTL(t *testing.T) {
	clock := &storetest.Clock{}
	db := openMem(t, &Options{Clock: clock.Time})
	for _, ttl := range []time.Duration{0, -1, math.MinInt64, MaxTTL + 1, math.MaxInt64} {
		require.ErrorIs(t, db.SetTTL([]byte("k"), nil, ttl, nil), ErrInvalidTTL, "%v", ttl)
		b := db.NewBatch()
		require.ErrorIs(t, b.SetTTL([]byte("k"), nil, ttl), ErrInvalidTTL)
		require.ErrorIs(t, b.Commit(nil), ErrInvalidTTL)
	}
	require.ErrorIs(t, db.SetTTL(make([]byte, MaxKeySize+1), nil, 1, nil), ErrTooLarge)
	requireContents(t, storetest.Model{}, db)
	require.NoError(t, db.SetTTL([]byte("long"), nil, MaxTTL, nil))
	require.NoError(t, db.SetTTL([]byte("short"), nil, 1, nil)) // less than the clock can tell
	requireContents(t, storetest.Model{"long": ""}, db)
	clock.Advance(MaxTTL - time.Microsecond)
	requireContents(t, storetest.Model{"long": ""}, db)
	clock.Advance(time.Microsecond)
	requireContents(t, storetest.Model{}, db)

	early := openMem(t, &Options{Clock: func() time.Time { return time.Time{} }})
	require.ErrorIs(t, early.SetTTL([]byte("k"), nil, time.Hour, nil), ErrInvalidTTL)
	late := openMem(t, &Options{Clock: func() time.Time { return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }})
	require.NoError(t, late.SetTTL([]byte("k"), []byte("v"), MaxTTL, nil))
	requireContents(t, storetest.Model{"k": "v"}, late)
}

func TestTheTimeOfABatchCountsFromItsCalls(t *testing.T) {
	clock := &storetest.Clock{}
	db := openMem(t, &Options{Clock: clock.Time})
	b := db.NewBatch()
	require.NoError(t, b.SetTTL([]byte("k"), []byte("v"), time.Second))
	clock.Advance(time.Second)
	require.NoError(t, b.Commit(nil))
	requireContents(t, storetest.Model{}, db)
}

func TestAnExpirySurvivesRecovery(t *testing.T) {
	clock := &storetest.Clock{}
	fs := vfs.NewMem()
	for i := range 4 {
		db := openDir(t, "db", &Options{harness: harness.Harness{FS: fs}, Clock: clock.Time, ReadOnly: i == 3})
		if i == 0 {
			require.NoError(t, db.SetTTL([]byte("k"), []byte("v"), 3*time.Second, nil))
		}
		if i == 3 {
			requireContents(t, storetest.Model{}, db)
		} else {
			requireContents(t, storetest.Model{"k": "v"}, db)
		}
		require.NoError(t, db.Close())
		clock.Advance(time.Second)
	}
}

// What is merged onto a value does not change when it ends, and outlives it.
func TestMergeOntoAValueThatExpires(t *testing.T) {
	clock := &storetest.Clock{}
	db := openMem(t, &Options{Clock: clock.Time, Merger: modelMerger})
	require.NoError(t, db.SetTTL([]byte("k"), []byte("a"), time.Second, nil))
	mergeAll(t, db, "k", "b", "c")
	for range 2 {
		requireContents(t, storetest.Model{"k": "a,b,c"}, db)
		require.NoError(t, db.Compact(t.Context(), nil, nil))
	}
	l := db.Metrics().Levels[lastLevel]
	require.Equal(t, []uint64{2, 1, 1}, []uint64{l.Entries, l.Merges, l.Expiring})
	clock.Advance(time.Second)
	for range 2 {
		requireContents(t, storetest.Model{"k": "b,c"}, db)
		require.NoError(t, db.Compact(t.Context(), nil, nil))
	}
	l = db.Metrics().Levels[lastLevel]
	require.Equal(t, []uint64{1, 0, 0}, []uint64{l.Entries, l.Merges, l.Expiring})
}

// Files whose values have all expired are compacted away, like those of tombstones.
func TestExpiredFilesAreCompacted(t *testing.T) {
	clock := &storetest.Clock{}
	db := openMem(t, &Options{Clock: clock.Time, L0CompactionThreshold: 1})
	for i := range 1000 {
		require.NoError(t, db.SetTTL(fmt.Appendf(nil, "k%04d", i), []byte("v"), time.Minute, Async))
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.EqualValues(t, 1000, db.Metrics().Levels[lastLevel].Expiring)
	clock.Advance(time.Minute)
	db.scheduleCompactions()
	db.waitForBackground()
	for _, l := range db.Metrics().Levels {
		require.Zero(t, l.Entries)
	}
	require.EqualValues(t, 1000, db.Metrics().ExpiredDropped)
}

func kindsBatch(tb testing.TB) *Batch {
	tb.Helper()
	b := &Batch{db: &DB{guarded: guarded{operands: operand.Combiner{Merger: Append("")}}}}
	b.db.clock.of = (&storetest.Clock{}).Time
	require.NoError(tb, b.Merge([]byte("counter"), int64Value(-2)))
	require.NoError(tb, b.Merge(nil, nil))
	require.NoError(tb, b.SetTTL([]byte("session"), []byte("value"), time.Hour))
	require.NoError(tb, b.SetTTL(nil, nil, 1))
	return b
}

func TestGoldenBatchOfKinds(t *testing.T) {
	record := kindsBatch(t).repr.Seal(0x123456)
	golden.File(t, filepath.Join("testdata", "batch-kinds.golden"), hex.Dump(record))
}

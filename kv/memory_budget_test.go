package kv

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

func TestBudgetRefusesOptions(t *testing.T) {
	b := NewMemoryBudget(16 << 20)
	for what, o := range map[string]*Options{
		"MemoryLimit":  {MemoryBudget: b, MemoryLimit: 16 << 20},
		"CacheSize":    {MemoryBudget: b, CacheSize: 1 << 20},
		"MemoryBudget": {MemoryBudget: NewMemoryBudget(1 << 20)},
		"0 bytes":      {MemoryBudget: &MemoryBudget{}},
		"BlockSize":    {MemoryBudget: NewMemoryBudget(4 << 20), BlockSize: 1 << 20},
	} {
		o.InMemory = true
		_, err := Open("db", o)
		require.ErrorIs(t, err, ErrInvalidOptions, what)
		require.ErrorContains(t, err, what)
	}
	requireNothingCharged(t, b)
}

// The store that a budget is too small for is refused, and told what it would need; those that are open go on.
func TestBudgetIsTooSmallForTheNumberOfStores(t *testing.T) {
	t.Parallel()
	b := NewMemoryBudget(4 << 20)
	o := &Options{MemoryBudget: b, InMemory: true}
	var stores []*DB
	for range 8 {
		stores = append(stores, openDir(t, "db", o))
	}
	_, err := Open("db", o)
	require.ErrorIs(t, err, ErrMemoryBudget)
	require.ErrorContains(t, err, "it has 4194304 bytes")
	require.ErrorContains(t, err, "8 stores are open and need 4194304, and this one needs 524288")
	require.ErrorContains(t, err, "want a budget of 4718592")
	for i, db := range stores {
		require.NoError(t, loadShare(db, i, scale.Fewer(3000, 500)))
	}
	require.NoError(t, stores[0].Close())
	again := openDir(t, "db", o)
	for _, db := range append(stores[1:], again) {
		require.NoError(t, db.Close())
	}
	requireNothingCharged(t, b)
}

// A store that cannot be opened has no share.
func TestBudgetOfAStoreThatDoesNotOpen(t *testing.T) {
	b := NewMemoryBudget(16 << 20)
	dir := t.TempDir()
	writeDir(t, dir, map[string]string{"letter.txt": "not a store"})
	_, err := Open(dir, &Options{MemoryBudget: b})
	require.ErrorIs(t, err, ErrForeignDirectory)
	requireNothingCharged(t, b)

	dir = filepath.Join(t.TempDir(), "db")
	db := openDir(t, dir, &Options{MemoryBudget: b})
	_, err = Open(dir, &Options{MemoryBudget: b})
	require.ErrorIs(t, err, ErrLocked)
	require.Equal(t, 1, b.Usage().Stores)
	require.NoError(t, db.Close())
	requireNothingCharged(t, b)
}

// Stores that are written and read at once have no more than the budget together, of each part what is
// meant for it, and the figures of the stores add up to those of the budget.
func TestBudgetHoldsForAllParts(t *testing.T) {
	t.Parallel()
	const limit, stores, keys = 8 << 20, 6, 8000 / min(storetest.RaceFactor, 2)
	b := NewMemoryBudget(limit)
	var dbs []*DB
	for range stores {
		dbs = append(dbs, openDir(t, "db", &Options{MemoryBudget: b, InMemory: true, BlockSize: 512}))
	}
	check := func() {
		u := b.Usage()
		require.LessOrEqual(t, u.Memtables, b.memory.Memtables()*5/4, "%+v", u)
		require.LessOrEqual(t, u.Blocks+u.Filters+u.Indexes, b.memory.ReadersLimit(false)*17/16, "%+v", u)
		require.LessOrEqual(t, u.Compactions, u.MaxCompaction)
		require.Equal(t, stores, u.Stores)
	}
	var wg sync.WaitGroup
	for i, db := range dbs {
		wg.Go(func() {
			if err := errors.Join(loadShare(db, i, keys), checkShare(db, i, keys, keys)); err != nil {
				t.Error(err)
			}
		})
	}
	for range 200 {
		check()
		require.NoError(t, dbs[0].Set([]byte("key"), nil, Async))
	}
	wg.Wait()
	for i, db := range dbs {
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		require.NoError(t, checkShare(db, i, keys, keys))
	}
	check()
	storetest.Until(func() bool { return b.Usage().Asked == 0 }) // stores that others asked for memory have given it
	for _, db := range dbs {
		db.settle()
	}
	u, sum := b.Usage(), int64(0)
	for _, db := range dbs {
		m := db.Metrics()
		require.Positive(t, m.FilterMemory)
		require.Less(t, m.BudgetBytes, u.Bytes())
		sum += m.BudgetBytes
	}
	require.Equal(t, u.Bytes(), sum+u.Remembered, "all stores remember false positives together")
	require.Greater(t, u.Blocks, b.memory.ReadersLimit(false)/3, "memory that is allowed is used")
	for _, db := range dbs {
		require.NoError(t, db.Close())
	}
	requireNothingCharged(t, b)
}

// Blocks of files with the same numbers, of stores that are copies of each other, are each their own.
func TestBudgetCacheTellsStoresApart(t *testing.T) {
	t.Parallel()
	b := NewMemoryBudget(16 << 20)
	dir := t.TempDir()
	o := &Options{MemoryBudget: b, BlockSize: 512}
	first := openDir(t, filepath.Join(dir, "0"), o)
	require.NoError(t, loadShare(first, 0, 3000))
	require.NoError(t, first.Compact(t.Context(), nil, nil))
	copied := filepath.Join(dir, "1")
	require.NoError(t, first.Checkpoint(t.Context(), copied))
	other := openDir(t, copied, o)
	for i := range 3000 {
		require.NoError(t, other.Set(shareKey(0, i), shareKey(1, i), Async))
	}
	require.NoError(t, other.Compact(t.Context(), nil, nil))
	for i := range 3000 {
		was, err := first.Get(shareKey(0, i))
		require.NoError(t, err)
		require.Len(t, was, 300)
		is, err := other.Get(shareKey(0, i))
		require.NoError(t, err)
		require.Equal(t, shareKey(1, i), is)
	}
	has, others := first.Metrics(), other.Metrics()
	require.Equal(t, b.Usage().Blocks, has.CacheBytes+others.CacheBytes)
	require.Positive(t, has.CacheBytes)
	require.NoError(t, other.Close())
	require.Equal(t, b.Usage().Blocks, has.CacheBytes, "what the other had is free")
	require.NoError(t, checkShare(first, 0, 3000, 100))
	require.NoError(t, first.Close())
	requireNothingCharged(t, b)
}

// A store that is read gets what a store in the cache has that is not read any more.
func TestBudgetCacheGoesToTheStoreThatIsRead(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "stores are read in turn; TestBudgetHoldsForAllParts reads them at once")
	const keys = 6000
	b := NewMemoryBudget(4 << 20)
	var dbs []*DB
	for i := range 2 {
		db := openMem(t, &Options{MemoryBudget: b, BlockSize: 512})
		require.NoError(t, loadShare(db, i, keys))
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		require.NoError(t, checkShare(db, i, keys, keys))
		dbs = append(dbs, db)
	}
	for i, db := range dbs {
		require.NoError(t, checkShare(db, i, keys, 5*keys))
		mine, others := db.Metrics().CacheBytes, dbs[1-i].Metrics().CacheBytes
		require.Greater(t, mine, 9*others, "store %d", i)
	}
}

// Iterators that are left open when their store is closed keep what they have, and it is counted until they
// are closed.
func TestBudgetCountsWhatIteratorsKeep(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "stores are written in turn; TestBudgetHoldsForAllParts writes them at once")
	b := NewMemoryBudget(16 << 20)
	o := &Options{MemoryBudget: b, InMemory: true}
	db, other := openDir(t, "db", o), openDir(t, "db", o)
	require.NoError(t, loadShare(db, 0, 100))
	it, err := db.NewIter(nil)
	require.NoError(t, err)
	require.True(t, it.First())
	require.ErrorIs(t, db.Close(), ErrIteratorsOpen)
	kept := b.Usage().Memtables
	require.NoError(t, loadShare(other, 1, 30_000))
	require.NoError(t, other.Close())
	require.Equal(t, 0, b.Usage().Stores)
	require.Positive(t, b.Usage().Memtables)
	require.Greater(t, kept, b.Usage().Memtables)
	require.NoError(t, it.Close())
	requireNothingCharged(t, b)
}

// Stores of all kinds share: with files, in memory, in an object store, read-only, and beside their writer.
func TestBudgetOfStoresOfAllKinds(t *testing.T) {
	const keys = 2000
	b := NewMemoryBudget(16 << 20)
	dir := t.TempDir()
	bucket := objstore.NewMem()
	writer := openDir(t, filepath.Join(dir, "writer"), &Options{MemoryBudget: b})
	memory := openDir(t, "db", &Options{MemoryBudget: b, InMemory: true, CacheSize: -1})
	objects := openDir(t, "", &Options{MemoryBudget: b, Objects: &objects.Config{Store: bucket}})
	local := b.memory.ReadersLimit(false)
	require.Less(t, b.memory.ReadersLimit(true), local)
	writers := []*DB{writer, memory, objects}
	for i, db := range writers {
		require.NoError(t, loadShare(db, i, keys))
	}
	require.NoError(t, objects.Flush(t.Context()))
	follower, err := OpenReadOnly(filepath.Join(dir, "writer"), &Options{MemoryBudget: b})
	require.NoError(t, err)
	require.NoError(t, writer.Set(shareKey(0, keys), nil, nil))
	require.NoError(t, follower.Refresh(t.Context()))
	require.Positive(t, follower.Metrics().BudgetBytes, "what it read from the log")
	require.NoError(t, checkShare(follower, 0, keys+1, keys))
	it, err := objects.NewIter(nil)
	require.NoError(t, err)
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	require.Equal(t, keys, n)
	require.NoError(t, it.Close())
	require.Equal(t, 4, b.Usage().Stores)
	require.Equal(t, b.memory.ReadersLimit(true), objects.memory.share.Readers.Limit())
	require.NoError(t, objects.Close())
	require.Equal(t, local, objects.memory.share.Readers.Limit())
	require.Zero(t, memory.Metrics().CacheBytes)
	require.NoError(t, memory.Close())
	require.NoError(t, writer.Close())
	require.NoError(t, follower.Close())
	readOnly := openDir(t, filepath.Join(dir, "writer"), &Options{MemoryBudget: b, ReadOnly: true})
	require.NoError(t, checkShare(readOnly, 0, keys+1, keys))
	require.Positive(t, readOnly.Metrics().BudgetBytes)
	require.NoError(t, readOnly.Close())
	requireNothingCharged(t, b)
}

// Writes that wait in logs are in memory while a store is opened, and are counted then.
func TestBudgetCountsWhatRecoveryReads(t *testing.T) {
	fs := vfs.NewMem()
	db := openDir(t, "db", &Options{harness: harness.Harness{FS: fs}})
	require.NoError(t, loadShare(db, 0, 3000))
	require.NoError(t, db.Close())
	b := NewMemoryBudget(4 << 20)
	db = openDir(t, "db", &Options{harness: harness.Harness{FS: fs}, MemoryBudget: b, ReadOnly: true})
	require.Greater(t, b.Usage().Memtables, int64(900_000))
	require.NoError(t, db.Close())
	db = openDir(t, "db", &Options{harness: harness.Harness{FS: fs}, MemoryBudget: b})
	require.Less(t, b.Usage().Memtables, int64(900_000), "flushed")
	require.NoError(t, checkShare(db, 0, 3000, 3000))
	require.NoError(t, db.Close())
	requireNothingCharged(t, b)
}

package kv

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/budget"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// A shareWriter writes to a store of a budget as long as a test likes.
type shareWriter struct {
	t    *testing.T
	db   *DB
	name int
	n    int
	rng  *rand.Rand
}

// sharers opens so many stores in memory with one budget.
func sharers(t *testing.T, b *MemoryBudget, n int) []*shareWriter {
	t.Helper()
	writers := make([]*shareWriter, n)
	for i := range writers {
		db := openMem(t, &Options{MemoryBudget: b})
		writers[i] = &shareWriter{t: t, db: db, name: i, rng: rand.New(rand.NewPCG(1, 1))}
	}
	return writers
}

// write writes some KiB.
func (w *shareWriter) write(kib int) {
	w.t.Helper()
	for range kib {
		require.NoError(w.t, w.db.Set(shareKey(w.name, w.n), randomBytes(w.rng, 900), Async))
		w.n++
	}
}

// size returns the size of the memtable.
func (w *shareWriter) size() int64 { return w.db.Metrics().MemtableSize }

// check holds the store against what was written.
func (w *shareWriter) check() {
	w.t.Helper()
	it, err := w.db.NewIter(nil)
	require.NoError(w.t, err)
	defer func() { require.NoError(w.t, it.Close()) }()
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		require.Equal(w.t, shareKey(w.name, n), it.Key())
		n++
	}
	require.Equal(w.t, w.n, n)
}

// A store that writes while others do not comes to have most of what there is for memtables, and when another one
// writes in its place, that has it: all of them cannot have so much at once.
func TestBudgetMemtablesFollowTheWriter(t *testing.T) {
	t.Parallel()
	b := NewMemoryBudget(8 << 20)
	writers := sharers(t, b, 4)
	for _, w := range writers {
		require.Less(t, w.size(), b.memory.Memtables()/10, "a store that has written nothing has little")
	}
	for range scale.Fewer(2, 1) {
		for _, w := range writers {
			for w.size() < b.memory.Memtables()/5 {
				w.write(100)
				require.Less(t, w.n, 300_000, "the store does not get what it should have: %+v", b.Usage())
			}
			require.LessOrEqual(t, b.Usage().Memtables, b.memory.Memtables()*5/4)
		}
	}
	for _, w := range writers {
		w.check()
	}
}

// Stores that all write have even shares, also those that come later.
func TestBudgetMemtablesOfManyWriters(t *testing.T) {
	t.Parallel()
	b := NewMemoryBudget(16 << 20)
	var writers []*shareWriter
	for n := range scale.Fewer(8, 4) {
		writers = append(writers, sharers(t, b, 1)...)
		writers[n].name = n
		even := b.memory.Memtables() / int64(3*len(writers))
		fair := func() bool {
			for _, w := range writers {
				if size := w.size(); size < even*3/4 || size > even*5/4 {
					return false
				}
			}
			return true
		}
		storetest.Until(func() bool {
			for _, w := range writers {
				w.write(10)
			}
			return fair()
		})
	}
	for _, w := range writers {
		w.check()
	}
}

// MemtableSize is an upper bound, and a batch that is larger than the memtable has its room.
func TestBudgetMemtableSizeIsABound(t *testing.T) {
	t.Parallel()
	b := NewMemoryBudget(64 << 20)
	db := openMem(t, &Options{MemoryBudget: b, MemtableSize: 128 << 10})
	for i := range 2000 {
		require.NoError(t, db.Set(shareKey(0, i), make([]byte, 500), Async))
		require.LessOrEqual(t, db.Metrics().MemtableSize, int64(128<<10))
	}
	require.NoError(t, db.Set([]byte("large"), make([]byte, 1<<20), nil))
	value, err := db.Get([]byte("large"))
	require.NoError(t, err)
	require.Len(t, value, 1<<20)
	require.NoError(t, db.Flush(t.Context()))
	require.LessOrEqual(t, db.Metrics().MemtableSize, int64(128<<10))
}

// A store whose disk is full keeps what it holds in memory, and no more. The others write on, each with a memtable of a
// quarter of an even share at the least; and when there is room again, they get the rest.
func TestBudgetBesideAStoreWithAFullDisk(t *testing.T) {
	t.Parallel()
	b := NewMemoryBudget(16 << 20)
	f := &vfstest.FaultFS{FS: vfs.NewMem()}
	sick := &shareWriter{t: t, db: openDir(t, "db", &Options{MemoryBudget: b, harness: harness.Harness{FS: f,
		Backoff: quickBackoff}}),
		rng: rand.New(rand.NewPCG(1, 1))}
	for sick.size() < b.memory.Memtables()/5 {
		sick.write(100)
	}
	f.Set(vfstest.Quota(0))
	var err error
	for err == nil {
		if err = sick.db.Set(shareKey(0, sick.n), nil, nil); err == nil {
			sick.n++
		}
	}
	requireFull(t, err, "db")
	held := sick.db.Metrics().BudgetBytes
	healthy := sharers(t, b, 4)
	floor := b.memory.Memtables() / budget.FloorPart / int64(3*(len(healthy)+1))
	for range scale.Fewer(100, 25) {
		for _, w := range healthy {
			w.write(50)
			require.GreaterOrEqual(t, w.size(), floor*9/10)
		}
		require.LessOrEqual(t, b.Usage().Memtables, b.memory.Memtables()*5/4)
	}
	require.LessOrEqual(t, sick.db.Metrics().BudgetBytes, held)
	require.NotEmpty(t, sick.db.Metrics().Failure)
	for _, w := range healthy {
		require.Empty(t, w.db.Metrics().Failure)
	}
	f.Set(nil)
	sick.db.untilResumed()
	w := healthy[0]
	storetest.Until(func() bool {
		w.write(100)
		return w.size() > b.memory.Memtables()/5
	})
	sick.check()
	require.NoError(t, sick.db.Close())
	for _, w := range healthy {
		w.check()
	}
}

// A store whose flush does not end holds up nobody but its own writers.
func TestBudgetBesideAStoreThatHangs(t *testing.T) {
	t.Parallel()
	b := NewMemoryBudget(16 << 20)
	stuck, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	fs := &vfstest.GateFS{FS: vfs.NewMem(), Table: func() {
		once.Do(func() { close(stuck) })
		<-release
	}}
	hung := &shareWriter{t: t, db: openDir(t, "db", &Options{MemoryBudget: b, harness: harness.Harness{FS: fs}})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range scale.Fewer(20_000, 10_000) {
			if err := hung.db.Set(shareKey(0, hung.n), make([]byte, 900), Async); err != nil {
				t.Error(err)
			}
			hung.n++
		}
	}()
	<-stuck
	for _, w := range sharers(t, b, 3) {
		w.write(scale.Fewer(5000, 1500))
		require.NoError(t, w.db.Compact(t.Context(), nil, nil))
		w.check()
	}
	close(release)
	<-done
	hung.check()
	require.NoError(t, hung.db.Close())
}

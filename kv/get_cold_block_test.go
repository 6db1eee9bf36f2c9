package kv

import (
	"bytes"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/multiget"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/sstable"
)

const readDelay = 100 * time.Microsecond

// slowStore returns a store of n keys whose tables are read slowly, and nothing of which is
// in the cache.
func slowStore(t *testing.T, n int, o Options) (*DB, *vfstest.SlowReadFS) {
	fsys := &vfstest.SlowReadFS{FS: vfs.NewMem()}
	if o.MemoryMap {
		fsys.FS = vfs.OS
	}
	if prefetch, ok := o.harness.FS.(*prefetchFS); ok {
		prefetch.SlowReadFS = fsys
	} else {
		o.harness.FS = fsys
	}
	db := multiStore(t, filepath.Join(t.TempDir(), "db"), n, o)
	_, err := db.Get(readBenchKey(nil, 0)) // opens a table
	require.NoError(t, err)
	for i := 0; i < n; i += n / 100 {
		_, err := db.Has(readBenchKey(nil, -2-i)) // opens all
		require.NoError(t, err)
	}
	chill(db)
	fsys.Delay.Store(int64(readDelay))
	fsys.Reset()
	return db, fsys
}

// coldReads is how many goroutines come to one block.
const coldReads = 64

// readTogether looks key up in every way at once, and returns the errors.
func readTogether(db *DB, key []byte) (errs []error) {
	var mu sync.Mutex
	var readers sync.WaitGroup
	for n := range coldReads {
		readers.Go(func() {
			err := readOneWay(db, n, key)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
			}
		})
	}
	readers.Wait()
	return errs
}

// readOneWay looks key up in one of several ways. Its value must be there.
func readOneWay(db *DB, way int, key []byte) error {
	var value []byte
	switch way % 4 {
	case 0:
		v, err := db.Get(key)
		if err != nil {
			return err
		}
		value = v
	case 1, 2: // one after the other, and together
		keys := [][]byte{key, key, key, key}[:5-2*(way%4)]
		values, err := db.MultiGet(keys)
		if err != nil {
			return err
		}
		value = values[len(values)-1]
	default:
		it, err := db.NewIter(nil)
		if err != nil {
			return err
		}
		if it.SeekGE(key) && string(it.Key()) == string(key) {
			value = append(value, it.Value()...)
		}
		if err := it.Error(); err != nil {
			return fmt.Errorf("%w, %w", err, it.Close())
		}
		if err := it.Close(); err != nil {
			return err
		}
	}
	if len(value) == 0 {
		return ErrNotFound
	}
	return nil
}

// However many come to a cold block, and in whatever way, it is read once: in the cache or
// not, with its index leaf or without. If the read fails, it fails for all of them, and
// is tried again by the next.
func TestAColdBlockIsReadOnce(t *testing.T) {
	for range 2 {
		runtime.GC() // pooled iterators read on as far as those before them went, which may be into the next block
	}
	for _, c := range []struct {
		name  string
		o     Options
		reads int64
	}{
		{"snappy", Options{}, 1},
		{"as stored", Options{Compression: sstable.NoCompression}, 1},
		{"leaves", Options{IndexPartition: 256}, 2},
		{"mapped", Options{IndexPartition: 256, MemoryMap: true, Compression: sstable.NoCompression}, 1}, // the leaf
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db, fsys := slowStore(t, 3000, c.o)
				fsys.Failing.Store(true)
				errs := readTogether(db, readBenchKey(nil, 1234))
				require.Len(t, errs, coldReads)
				for _, err := range errs {
					require.ErrorIs(t, err, vfstest.ErrSlowRead)
				}
				require.EqualValues(t, 1, fsys.Reads.Load())
				fsys.Failing.Store(false)
				fsys.Reset()
				require.Empty(t, readTogether(db, readBenchKey(nil, 1234)))
				require.Equal(t, c.reads, fsys.Reads.Load())
				require.EqualValues(t, 1, fsys.MaxReads.Load())
				fsys.Reset()
				require.Empty(t, readTogether(db, readBenchKey(nil, 1234)))
				require.Zero(t, fsys.Reads.Load(), "it is in the cache")
				require.NoError(t, db.Close())
			})
		})
	}
}

// The first read tells that reads wait, and then all others wait side by side, whatever
// the number of processors.
func TestMultiGetWaitsForAllBlocksAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ keys, rounds int }{
		{4, 2}, {32, 2}, {1 + values.MaxReads, 2}, {2 + values.MaxReads, 3},
		{100, 1 + (99+values.MaxReads-1)/values.MaxReads},
	}[scale.Fewer(0, 3):] {
		synctest.Test(t, func(t *testing.T) {
			db, fsys := storeOfBlocks(t, Options{Compression: sstable.NoCompression})
			keys := keysOfBlocks(t, db, c.keys)
			fsys.Delay.Store(int64(readDelay))
			fsys.Reset()
			began := time.Now()
			got, err := db.MultiGet(keys)
			require.NoError(t, err)
			require.NotContains(t, got, []byte(nil))
			require.EqualValues(t, c.keys, fsys.Reads.Load())
			require.EqualValues(t, min(c.keys-1, values.MaxReads), fsys.MaxReads.Load())
			require.Equal(t, time.Duration(c.rounds)*readDelay, time.Since(began), "%d keys", c.keys)
			require.NoError(t, db.Close())
		})
	}
}

// Where the system reads ahead, it is asked for the next blocks before the first is waited for, and
// nobody but the caller waits.
func TestMultiGetAsksForBlocksAheadOfTheFirstWait(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "one goroutine asks ahead; TestMultiGetWaitsForAllBlocksAtOnce has several")
	for _, n := range []int{4, 32, 1 + multiget.MaxPrefetch, 2 + multiget.MaxPrefetch, 300} {
		synctest.Test(t, func(t *testing.T) {
			prefetch := newPrefetchFS()
			db, fsys := storeOfBlocks(t, Options{Compression: sstable.NoCompression,
				harness: harness.Harness{FS: prefetch}})
			keys := keysOfBlocks(t, db, n)
			prefetch.Forget()
			fsys.Delay.Store(int64(readDelay))
			fsys.Reset()
			began := time.Now()
			requireValues(t, db, keys)
			waits := (n + multiget.MaxPrefetch) / (1 + multiget.MaxPrefetch)
			require.Equal(t, time.Duration(waits)*readDelay, time.Since(began), "%d keys", n)
			require.EqualValues(t, waits, fsys.Reads.Load(), "calls that wait")
			require.EqualValues(t, 1, fsys.MaxReads.Load())
			require.NoError(t, db.Close())
		})
	}
}

// Leaves of the index that are not in memory are asked for ahead as well: two waits in all.
func TestMultiGetAsksForLeavesAhead(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "one goroutine asks ahead; TestMultiGetWaitsForAllBlocksAtOnce has several")
	for _, partition := range []int{64, 512} {
		synctest.Test(t, func(t *testing.T) {
			prefetch := newPrefetchFS()
			o := Options{Compression: sstable.NoCompression, harness: harness.Harness{FS: prefetch},
				IndexPartition: partition}
			db, fsys := storeOfBlocks(t, o)
			keys := keysOfBlocks(t, db, multiget.MaxPrefetch)
			prefetch.Forget()
			fsys.Delay.Store(int64(readDelay))
			fsys.Reset()
			began, before := time.Now(), indexLeavesFromDisk(db)
			_, err := db.MultiGet(keys)
			require.NoError(t, err)
			require.Equal(t, 2*readDelay, time.Since(began))
			require.EqualValues(t, 2, fsys.Reads.Load(), "calls that wait")
			leaves := indexLeavesFromDisk(db) - before
			require.Greater(t, leaves, uint64(5))
			require.EqualValues(t, int(leaves)+len(keys), prefetch.Asked, "each once")
			requireValues(t, db, keys)
			require.NoError(t, db.Close())
		})
	}
}

func indexLeavesFromDisk(db *DB) (n uint64) {
	for _, l := range db.Metrics().Levels {
		n += l.Lookup.IndexLeavesFromDisk
	}
	return n
}

// Where the system is asked for blocks and does not begin to read them, they are waited for side by side.
func TestMultiGetWaitsSideBySideIfAskingAheadIsNoHelp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		prefetch := newPrefetchFS()
		o := Options{Compression: sstable.NoCompression, harness: harness.Harness{FS: prefetch}}
		db, fsys := storeOfBlocks(t, o)
		keys := keysOfBlocks(t, db, 32)
		prefetch.Forget()
		prefetch.Deaf = true
		fsys.Delay.Store(int64(readDelay))
		fsys.Reset()
		began := time.Now()
		requireValues(t, db, keys)
		require.Equal(t, 3*readDelay, time.Since(began), "the first, the second, and all others")
		require.EqualValues(t, len(keys), fsys.Reads.Load())
		require.NoError(t, db.Close())
	})
}

// Blocks that are in memory are shared with another processor if they are many. When those that come
// next are not, they are waited for as if they were the first. Each is read once.
func TestMultiGetOfBlocksOfWhichSomeAreInMemory(t *testing.T) {
	processors(t, 2)
	for _, c := range []struct {
		name  string
		ahead bool
		most  int
	}{{"waits", false, values.MaxReads}, {"reads ahead", true, 1}} {
		counts := []int{0, 1, 50, 290, 300}
		if storetest.RaceFactor > 1 {
			counts = []int{50} // the others count, with the same goroutines
		}
		for _, warm := range counts {
			t.Run(fmt.Sprintf("%s, %d", c.name, warm), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := Options{Compression: sstable.NoCompression}
					prefetch := newPrefetchFS()
					if c.ahead {
						o.harness.FS = prefetch
					}
					db, fsys := storeOfBlocks(t, o)
					keys := keysOfBlocks(t, db, 300)
					fsys.Delay.Store(int64(readDelay))
					fsys.Warm.Store(int64(warm))
					fsys.Reset()
					prefetch.Forget()
					before := blocksFromDisk(db)
					requireValues(t, db, keys)
					require.EqualValues(t, len(keys), blocksFromDisk(db)-before)
					require.LessOrEqual(t, int(fsys.MaxReads.Load()), c.most+1)
					if warm < 200 {
						require.GreaterOrEqual(t, int(fsys.MaxReads.Load()), c.most)
					}
					require.NoError(t, db.Close())
				})
			})
		}
	}
}

// requireValues requires that all keys are in a store of slowStore.
func requireValues(t *testing.T, db *DB, keys [][]byte) {
	values, err := db.MultiGet(keys)
	require.NoError(t, err)
	for i, key := range keys {
		want, err := db.Get(key)
		require.NoError(t, err)
		require.Equal(t, string(want), string(values[i]))
	}
}

func blocksFromDisk(db *DB) (n uint64) {
	for _, l := range db.Metrics().Levels {
		n += l.Lookup.BlocksFromDisk
	}
	return n
}

// storeOfBlocks returns a slowStore of more than 300 blocks, which are small for the sake of few keys.
func storeOfBlocks(t *testing.T, o Options) (*DB, *vfstest.SlowReadFS) {
	o.BlockSize = 1 << 10
	return slowStore(t, 15_000, o)
}

// keysOfBlocks returns n keys of as many blocks of storeOfBlocks, none of which is in the cache.
func keysOfBlocks(t *testing.T, db *DB, n int) (keys [][]byte) {
	it, err := db.NewIter(nil)
	require.NoError(t, err)
	for i, ok := 0, it.First(); ok && len(keys) < n; i, ok = i+1, it.Next() {
		if i%45 == 44 { // a block has fewer
			keys = append(keys, append([]byte{}, it.Key()...))
		}
	}
	require.NoError(t, it.Close())
	require.Len(t, keys, n)
	chill(db)
	return keys
}

// chill empties the cache.
func chill(db *DB) {
	size := db.memory.cache.Capacity()
	db.memory.cache.Resize(0)
	db.memory.cache.Resize(size)
}

// BenchmarkColdBlock has many goroutines look up keys of one cold block at a time, in a
// cache of few blocks, and reports how many reads a block takes. The limit is one.
func BenchmarkColdBlock(b *testing.B) {
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("goroutines=%d", n), func(b *testing.B) {
			fsys := &vfstest.SlowReadFS{FS: vfs.NewMem()}
			db := multiStore(b, "db", 20_000, Options{harness: harness.Harness{FS: fsys}, CacheSize: 64 << 10})
			fsys.Delay.Store(int64(readDelay))
			fsys.Reset()
			step := 0
			for b.Loop() {
				step = (step + 7_919) % 20_000
				key := readBenchKey(nil, step)
				var readers sync.WaitGroup
				for range n {
					readers.Go(func() {
						if _, err := db.Get(key); err != nil {
							b.Error(err)
						}
					})
				}
				readers.Wait()
			}
			b.ReportMetric(float64(fsys.Reads.Load())/float64(b.N), "reads/miss")
			require.NoError(b, db.Close())
		})
	}
}

// A key whose operands fill more than a block is looked up together with others as it is alone.
func TestMultiGetOfOperandsInSeveralBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, fsys := slowStore(t, 1000, Options{Merger: Append(""), Compression: sstable.NoCompression})
		keys := [][]byte{readBenchKey(nil, -1), readBenchKey(nil, -2), readBenchKey(nil, -3), readBenchKey(nil, -4)}
		var held []*Snapshot
		for range 5 { // of each key more than a block
			for _, key := range keys {
				require.NoError(t, db.Merge(key, bytes.Repeat([]byte("x"), 1500), Async))
			}
			held = append(held, db.NewSnapshot())
		}
		require.NoError(t, db.Flush(t.Context()))
		chill(db)
		fsys.Reset()
		requireValues(t, db, keys)
		require.GreaterOrEqual(t, fsys.Reads.Load(), int64(4))
		for _, s := range held {
			require.NoError(t, s.Close())
		}
		require.NoError(t, db.Close())
	})
}

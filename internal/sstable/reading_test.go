package sstable

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A gatedFile stops reads below limit at a gate, and counts them.
type gatedFile struct {
	*bytes.Reader
	gate  chan error // a read takes one error, nil once it is closed
	limit int64
	reads atomic.Int64
}

func (g *gatedFile) ReadAt(b []byte, offset int64) (int, error) {
	if offset < g.limit {
		g.reads.Add(1)
		if err := <-g.gate; err != nil {
			return 0, err
		}
	}
	return g.Reader.ReadAt(b, offset)
}

// gatedData is a file for openGated. It is made and read outside of a bubble, because the
// coders of zstd, which are made at first use, have channels.
func gatedData(t *testing.T, o WriterOptions) []byte {
	o.ID, o.Filter = 1, mustParse("none")
	data := plainFile(t, 3000, o)
	_, err := openBytes(t, data, nil).get(keyOf(0))
	require.NoError(t, err)
	return data
}

// openGated opens a file of which blocks and leaves can be read only through a gate.
func openGated(t *testing.T, data []byte, cacheSize int64) (*Reader, *gatedFile) {
	f := &gatedFile{Reader: bytes.NewReader(data), gate: make(chan error)}
	r, err := NewReader(f, int64(len(data)), &ReaderOptions{CacheSize: cacheSize})
	require.NoError(t, err)
	f.limit = int64(r.index.End())
	return r, f
}

// findTogether begins n lookups of each key, and returns when all of them wait.
func findTogether(r *Reader, n int, keys ...int) (wait func() (total Probe, errs []error)) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var total Probe
	var errs []error
	for _, k := range keys {
		for range n {
			wg.Go(func() {
				var p Probe
				key := keyOf(k)
				value, _, ok, err := r.Find(nil, key, filterpolicy.Hash(key), base.MaxSeqNum, &p)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					errs = append(errs, err)
				} else if !ok || len(value) != 100 {
					errs = append(errs, errAbsent)
				}
				total.BlocksFromDisk += p.BlocksFromDisk
				total.BlocksFromCache += p.BlocksFromCache
				total.IndexLeavesFromDisk += p.IndexLeavesFromDisk
			})
		}
	}
	synctest.Wait()
	return func() (Probe, []error) {
		wg.Wait()
		return total, errs
	}
}

func TestAColdBlockIsReadOnceForAll(t *testing.T) {
	const n = 20
	for _, c := range []Compression{NoCompression, Snappy, Zstd} {
		data := gatedData(t, WriterOptions{Compression: c})
		synctest.Test(t, func(t *testing.T) {
			r, f := openGated(t, data, 1<<20)
			wait := findTogether(r, n, 1234)
			require.EqualValues(t, 1, f.reads.Load(), "all others wait for it")
			close(f.gate)
			p, errs := wait()
			require.Empty(t, errs)
			require.EqualValues(t, 1, f.reads.Load())
			require.Equal(t, 1, p.BlocksFromDisk)
			require.Equal(t, n-1, p.BlocksFromCache)
			require.NoError(t, r.Close())
		})
	}
}

// seekTogether begins n seeks of a key, each by an iterator that has scanned three blocks after each seek
// before, and returns when all of them wait.
func seekTogether(r *Reader, n, key int) (wait func() (errs []error)) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for range n {
		wg.Go(func() {
			it := r.NewIter(IterOptions{})
			it.stride.mean = 3 << 8
			ok := it.SeekGE(base.SearchKey(keyOf(key), base.MaxSeqNum))
			err := it.Error()
			if err == nil && (!ok || !bytes.Equal(it.Key().User, keyOf(key)) || len(it.Value()) != 100) {
				err = errAbsent
			}
			it.Release()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
			}
		})
	}
	synctest.Wait()
	return func() []error {
		wg.Wait()
		return errs
	}
}

// A neverNow is a file of which the system tells of no byte that it has it in memory.
type neverNow vfs.NowRead

// ReadNow implements vfs.NowReader.
func (n neverNow) ReadNow([]byte, int64) vfs.NowRead { return vfs.NowRead(n) }

// Seeks that expect scans of several blocks read the first of them once, in one piece with the next, and
// lookups have it from there; also where the system is asked first what it has in memory.
func TestABlockThatManySeekIsReadOnceForAll(t *testing.T) {
	const n = 20
	for _, c := range []Compression{NoCompression, Snappy, Zstd} {
		data := gatedData(t, WriterOptions{Compression: c, BlockSize: 1 << 10})
		for _, o := range []struct {
			cacheSize int64
			now       vfs.NowReader
		}{
			{1 << 20, nil}, {1 << 20, neverNow(vfs.NowUnable)}, {1 << 20, neverNow(vfs.NowBegun)},
			{-1, nil}, {-1, neverNow(vfs.NowUnable)}, {-1, neverNow(vfs.NowBegun)},
		} {
			synctest.Test(t, func(t *testing.T) {
				r, f := openGated(t, data, o.cacheSize)
				r.now = o.now
				seeks, finds := seekTogether(r, n, 1234), findTogether(r, n, 1234)
				f.gate <- errFailed // of the piece
				f.gate <- errFailed // of the block alone
				_, errs := finds()
				errs = append(errs, seeks()...)
				require.Len(t, errs, 2*n)
				for _, err := range errs {
					require.ErrorIs(t, err, errFailed)
				}
				require.EqualValues(t, 2, f.reads.Swap(0))

				seeks, finds = seekTogether(r, n, 1234), findTogether(r, n, 1234)
				close(f.gate)
				_, errs = finds()
				require.Empty(t, append(errs, seeks()...))
				require.EqualValues(t, 1, f.reads.Load())
				require.NoError(t, r.Close())
			})
		}
	}
}

// A panicFile panics in the first read below limit.
type panicFile struct {
	*gatedFile
	panicked atomic.Bool
}

func (f *panicFile) ReadAt(b []byte, offset int64) (int, error) {
	n, err := f.gatedFile.ReadAt(b, offset)
	if offset < f.limit && !f.panicked.Swap(true) {
		panic("the file")
	}
	return n, err
}

// Who waits for a read that ends in a panic is told, and the block can be read again.
func TestAPanicLeavesNobodyWaiting(t *testing.T) {
	for name, c := range map[string]struct {
		o     WriterOptions
		cache int64
	}{
		"stored": {WriterOptions{Compression: NoCompression}, 1 << 20},
		"snappy": {WriterOptions{Compression: Snappy}, 1 << 20},
		"leaf":   {WriterOptions{Compression: Snappy, IndexPartition: 200}, 1 << 20},
		"big":    {WriterOptions{Compression: Snappy, IndexPartition: 200, BlockSize: 128}, 512},
		"ahead":  {WriterOptions{Compression: Snappy, BlockSize: 1 << 10}, 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			data := gatedData(t, c.o)
			synctest.Test(t, func(t *testing.T) {
				r, f := openGated(t, data, c.cache)
				file := &panicFile{gatedFile: f}
				r.file = file
				var panicked sync.WaitGroup
				panicked.Go(func() {
					defer func() { _ = recover() }()
					it := r.NewIter(IterOptions{})
					if name == "ahead" {
						it.stride.mean = 3 << 8
					}
					it.SeekGE(base.SearchKey(keyOf(1234), base.MaxSeqNum))
				})
				synctest.Wait()
				wait := findTogether(r, 5, 1234)
				close(f.gate)
				panicked.Wait()
				require.True(t, file.panicked.Load())
				_, errs := wait()
				require.Len(t, errs, 5)
				for _, err := range errs {
					require.ErrorIs(t, err, errAbandoned)
				}
				_, errs = findTogether(r, 5, 1234)()
				require.Empty(t, errs)
			})
		})
	}
}

func TestAColdIndexLeafIsReadOnceForAll(t *testing.T) {
	data := gatedData(t, WriterOptions{Compression: Snappy, IndexPartition: 200})
	synctest.Test(t, func(t *testing.T) {
		r, f := openGated(t, data, 1<<20)
		require.Positive(t, r.leafBlocks)
		wait := findTogether(r, 20, 1234)
		close(f.gate)
		p, errs := wait()
		require.Empty(t, errs)
		require.Equal(t, 1, p.IndexLeavesFromDisk)
		require.Equal(t, 1, p.BlocksFromDisk)
		require.EqualValues(t, 2, f.reads.Load())
		require.NoError(t, r.Close())
	})
}

// Lookups of different blocks that need one cold leaf read it once, and then their blocks; also
// where the cache keeps nothing.
func TestAColdIndexLeafIsReadOnceForAllItsBlocks(t *testing.T) {
	data := gatedData(t, WriterOptions{Compression: Snappy, IndexPartition: 2000})
	for _, cacheSize := range []int64{1 << 20, -1} {
		synctest.Test(t, func(t *testing.T) {
			r, f := openGated(t, data, cacheSize)
			require.Greater(t, r.leafBlocks, 3)
			wait := findTogether(r, 5, 0, 45, 90) // 100 bytes each, in blocks of 4 KiB
			require.EqualValues(t, 1, f.reads.Load(), "all wait for the leaf")
			close(f.gate)
			p, errs := wait()
			require.Empty(t, errs)
			require.Equal(t, 1, p.IndexLeavesFromDisk)
			require.NoError(t, r.Close())
		})
	}
}

func TestReadersOfOtherBlocksDoNotWait(t *testing.T) {
	data := gatedData(t, WriterOptions{Compression: NoCompression})
	synctest.Test(t, func(t *testing.T) {
		r, f := openGated(t, data, 1<<20)
		wait := findTogether(r, 3, 0, 1000, 2000)
		require.EqualValues(t, 3, f.reads.Load(), "each of three blocks is being read")
		close(f.gate)
		p, errs := wait()
		require.Empty(t, errs)
		require.Equal(t, 3, p.BlocksFromDisk)
		require.NoError(t, r.Close())
	})
}

// Everybody who waited gets the error of a read that fails; the next lookup tries again.
func TestAFailedReadIsEverybodys(t *testing.T) {
	data := gatedData(t, WriterOptions{Compression: NoCompression})
	leaves := gatedData(t, WriterOptions{IndexPartition: 200})
	for _, c := range []struct {
		data      []byte
		cacheSize int64
	}{{data, 1 << 20}, {data, -1}, {leaves, 1 << 20}, {leaves, -1}, {leaves, 512}} {
		synctest.Test(t, func(t *testing.T) {
			r, f := openGated(t, c.data, c.cacheSize)
			wait := findTogether(r, 5, 1234)
			require.EqualValues(t, 1, f.reads.Load())
			f.gate <- errFailed
			_, errs := wait()
			require.Len(t, errs, 5)
			for _, err := range errs {
				require.ErrorIs(t, err, errFailed)
			}
			close(f.gate)
			wait = findTogether(r, 5, 1234)
			_, errs = wait()
			require.Empty(t, errs)
			require.NoError(t, r.Close())
			require.Empty(t, r.reading.blocks)
		})
	}
}

// Where the cache keeps nothing, or not this block, those who come while it is read are
// handed it all the same.
func TestABlockThatIsNotKeptIsReadOnceForAll(t *testing.T) {
	for _, compression := range []Compression{NoCompression, Snappy, Zstd} {
		data := gatedData(t, WriterOptions{Compression: compression})
		for _, cacheSize := range []int64{-1, 8 << 10} {
			synctest.Test(t, func(t *testing.T) {
				r, f := openGated(t, data, cacheSize)
				wait := findTogether(r, 5, 1234)
				require.EqualValues(t, 1, f.reads.Load())
				close(f.gate)
				p, errs := wait()
				require.Empty(t, errs)
				require.EqualValues(t, 1, f.reads.Load())
				require.Equal(t, 1, p.BlocksFromDisk)
				require.NoError(t, r.Close())
			})
		}
	}
}

// A waiter has the block although it has left the cache by the time that it looks: here
// the cache has room for a few blocks, and each is wanted by many.
func TestWaitersHaveABlockThatIsEvictedAtOnce(t *testing.T) {
	for _, compression := range []Compression{NoCompression, Snappy} {
		data := gatedData(t, WriterOptions{Compression: compression})
		synctest.Test(t, func(t *testing.T) {
			r, f := openGated(t, data, 32<<10)
			keys := make([]int, 60)
			for i := range keys {
				keys[i] = 50 * i
			}
			wait := findTogether(r, 64, keys...)
			reads := f.reads.Load()
			close(f.gate)
			p, errs := wait()
			require.Empty(t, errs)
			require.Equal(t, reads, f.reads.Load(), "all waited for one of the first reads")
			require.EqualValues(t, reads, p.BlocksFromDisk)
			require.NoError(t, r.Close())
		})
	}
}

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

// A read that fails is its own reader's error: the others read for themselves.
func TestAFailedReadIsNotShared(t *testing.T) {
	data := gatedData(t, WriterOptions{Compression: NoCompression})
	synctest.Test(t, func(t *testing.T) {
		r, f := openGated(t, data, 1<<20)
		wait := findTogether(r, 5, 1234)
		require.EqualValues(t, 1, f.reads.Load())
		f.gate <- errFailed
		synctest.Wait()
		close(f.gate)
		_, errs := wait()
		require.Len(t, errs, 1)
		require.ErrorIs(t, errs[0], errFailed)
		f.reads.Store(0)
		wait = findTogether(r, 5, 1234)
		_, errs = wait()
		require.Empty(t, errs)
		require.Zero(t, f.reads.Load())
		require.NoError(t, r.Close())
	})
}

// Where the cache keeps nothing, or not this block, there is nothing to wait for.
func TestReadersDoNotWaitForWhatIsNotKept(t *testing.T) {
	data := gatedData(t, WriterOptions{Compression: NoCompression})
	for _, cacheSize := range []int64{-1, 8 << 10} {
		synctest.Test(t, func(t *testing.T) {
			r, f := openGated(t, data, cacheSize)
			wait := findTogether(r, 5, 1234)
			require.EqualValues(t, 5, f.reads.Load())
			close(f.gate)
			_, errs := wait()
			require.Empty(t, errs)
			require.NoError(t, r.Close())
		})
	}
}

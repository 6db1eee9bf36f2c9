package sstable

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
)

// A yieldingFile lets others run in the middle of a read, as a device does.
type yieldingFile struct {
	*bytes.Reader
	reads atomic.Int64
}

func (y *yieldingFile) ReadAt(b []byte, offset int64) (int, error) {
	y.reads.Add(1)
	runtime.Gosched()
	return y.Reader.ReadAt(b, offset)
}

// BenchmarkCold measures lookups of blocks that are not in the cache, from a file in
// memory: of one goroutine, of many that come to blocks of their own, and of eight that all
// want the same block (for all eight). The limit of the first two is checksum,
// decompression and search of a block, some microseconds; of the last, one read.
func BenchmarkCold(b *testing.B) {
	const n = 50_000
	data := plainFile(b, n, WriterOptions{Compression: Snappy, Filter: mustParse("none"), ID: 1})
	find := func(b *testing.B, r *Reader, dst []byte, i int) {
		var p Probe
		key := keyOf(i)
		if _, _, ok, err := r.Find(dst, key, filterpolicy.Hash(key), base.MaxSeqNum, &p); !ok || err != nil {
			b.Error(ok, err)
		}
	}
	open := func(b *testing.B) *Reader {
		r, err := NewReader(bytes.NewReader(data), int64(len(data)), &ReaderOptions{CacheSize: 256 << 10})
		require.NoError(b, err)
		return r
	}
	b.Run("one", func(b *testing.B) {
		r, dst, i := open(b), make([]byte, 0, 100), 0
		for b.Loop() {
			i = (i + 12_347) % n
			find(b, r, dst, i)
		}
		require.NoError(b, r.Close())
	})
	b.Run("parallel", func(b *testing.B) {
		r := open(b)
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			dst, i := make([]byte, 0, 100), 0
			for pb.Next() {
				i = (i + 12_347) % n
				find(b, r, dst, i)
			}
		})
		require.NoError(b, r.Close())
	})
	b.Run("same", func(b *testing.B) {
		f := &yieldingFile{Reader: bytes.NewReader(data)}
		r, err := NewReader(f, int64(len(data)), &ReaderOptions{CacheSize: 256 << 10})
		require.NoError(b, err)
		i := 0
		for b.Loop() {
			i = (i + 12_347) % n
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() { find(b, r, nil, i) })
			}
			wg.Wait()
		}
		b.ReportMetric(float64(f.reads.Load())/float64(b.N), "reads/op")
		require.NoError(b, r.Close())
	})
}

// BenchmarkLeaves measures lookups in a file whose index, of 4.8 MB, is cut, through a cache
// of 2 MiB. The limit is one data block and most of the time a leaf.
func BenchmarkLeaves(b *testing.B) {
	const n = 200_000
	data := plainFile(b, n, WriterOptions{BlockSize: 128, Filter: mustParse("none"), ID: 1})
	r, err := NewReader(bytes.NewReader(data), int64(len(data)), &ReaderOptions{CacheSize: 2 << 20})
	require.NoError(b, err)
	require.Positive(b, r.leafBlocks)
	dst, rng := make([]byte, 0, 100), rand.New(rand.NewPCG(1, 1))
	var p Probe
	for b.Loop() {
		key := keyOf(rng.IntN(n))
		if _, _, ok, err := r.Find(dst, key, filterpolicy.Hash(key), base.MaxSeqNum, &p); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
	b.ReportMetric(float64(p.BytesFromDisk)/float64(b.N), "read-B/op")
	b.ReportMetric(float64(p.IndexLeavesFromDisk)/float64(b.N), "leaves/op")
	require.NoError(b, r.Close())
}

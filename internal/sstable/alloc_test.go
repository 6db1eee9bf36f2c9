//go:build !race

package sstable

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
)

// Under the race detector, pools lose what they are given on purpose.

func TestFindDoesNotAllocate(t *testing.T) {
	const n = 5000
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key-%012d", 2*i)
	}
	for _, c := range []Compression{NoCompression, Snappy} {
		data := plainFile(t, n, WriterOptions{Compression: c, ID: 1})
		for _, cacheSize := range []int64{16 << 20, 64 << 10, -1} { // hits, evictions, no cache
			r, err := NewReader(bytes.NewReader(data), int64(len(data)), &ReaderOptions{CacheSize: cacheSize})
			require.NoError(t, err)
			var dst []byte
			i := 0
			find := func() {
				i = (i + 1237) % n
				var p Probe
				value, _, ok, err := r.Find(dst[:0], keys[i], filterpolicy.Hash(keys[i]), base.MaxSeqNum, &p)
				if err != nil || !ok || len(value) != 100 {
					t.Fatal(ok, err, len(value))
				}
				dst = value
			}
			for range 2 * n {
				find()
			}
			// Pools lose buffers to the collector now and then.
			require.Less(t, testing.AllocsPerRun(2000, find), 0.2, "%s, cache %d", c, cacheSize)
			require.NoError(t, r.Close())
		}
	}
}

// A pass decodes all blocks of a file into the same memory, with a cache and without.
func TestPassDoesNotAllocateForABlock(t *testing.T) {
	const n = 5000
	for _, c := range []Compression{NoCompression, Snappy} { // the decoder of zstd takes memory of its own
		data := plainFile(t, n, WriterOptions{Compression: c, ID: 1})
		for _, cacheSize := range []int64{16 << 20, -1} {
			r, err := NewReader(bytes.NewReader(data), int64(len(data)), &ReaderOptions{CacheSize: cacheSize})
			require.NoError(t, err)
			require.Greater(t, r.dataCount, 100)
			if it := r.NewIter(IterOptions{}); cacheSize > 0 { // half of the blocks are in the cache
				for ok := it.First(); ok && it.loc.block < r.dataCount/2; {
					ok = it.Next()
				}
			}
			it := r.NewIter(IterOptions{Sequential: true})
			pass := func() {
				entries := 0
				for ok := it.First(); ok; ok = it.Next() {
					entries++
				}
				if entries != n || it.Error() != nil {
					t.Fatal(entries, it.Error())
				}
			}
			pass()
			require.Less(t, testing.AllocsPerRun(10, pass), float64(r.dataCount)/10, "%s, cache %d", c, cacheSize)
			require.NoError(t, r.Close())
		}
	}
}

// A writer has one buffer for compressed blocks, also of those that compression does not
// make smaller.
func TestWriterDoesNotAllocateForABlock(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	value := make([]byte, 500)
	for _, c := range []Compression{NoCompression, Snappy, Zstd} {
		for _, random := range []bool{false, true} {
			for i := range value {
				if random {
					value[i] = byte(rng.Uint32())
				} else {
					value[i] = byte(i & 3)
				}
			}
			w := NewWriter(io.Discard, &WriterOptions{Compression: c, Filter: mustParse("none"), ID: 1})
			var key []byte
			n := uint64(0)
			block := func() {
				for blocks := w.props.DataBlocks; w.props.DataBlocks == blocks; n++ {
					key = binary.BigEndian.AppendUint64(key[:0], n)
					if err := w.Add(base.MakeKey(key, 0, base.KindSet), value); err != nil {
						t.Fatal(err)
					}
				}
			}
			for range 100 {
				block()
			}
			// The index grows now and then.
			require.Less(t, testing.AllocsPerRun(300, block), 0.2, "%s, random %v", c, random)
		}
	}
}

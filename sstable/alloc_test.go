//go:build !race

package sstable

import (
	"bytes"
	"fmt"
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

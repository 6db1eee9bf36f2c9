package kv

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Scans with bounds, of a settled store and of 16 young files. The limits: a scan without bounds; where the
// upper bound is in the block in which the scan begins, no second block.
func BenchmarkBoundedScan(b *testing.B) {
	settled := readBenchStore(b, Options{})
	for _, n := range []int{1, 10, 1000} {
		b.Run(fmt.Sprintf("settled/%d", n), func(b *testing.B) {
			var lo []byte
			hi := make([]byte, 8)
			width := uint64(n) * (1 << 63 / readBenchKeys) * 2 // of about n keys
			benchmarkBounded(b, settled, func(step int) (lower, upper []byte) {
				lo = readBenchKey(lo, step*77_773%readBenchKeys)
				from := binary.BigEndian.Uint64(lo)
				binary.BigEndian.PutUint64(hi, max(from+width, from))
				return lo, hi
			})
		})
	}
	young, err := Open(b.TempDir(), &Options{L0CompactionThreshold: 100, L0SlowdownThreshold: 100})
	require.NoError(b, err)
	key := make([]byte, 16)
	at := func(key []byte, i int) []byte {
		binary.BigEndian.PutUint64(key, uint64(i)*0x9e3779b97f4a7c15)
		return key
	}
	for f := range 16 {
		for i := range 5000 {
			require.NoError(b, young.Set(at(key, f*5000+i), make([]byte, 100), Async))
		}
		require.NoError(b, young.Flush())
	}
	for _, part := range []uint64{16, 100_000} { // of a mean distance of two keys of a file
		b.Run(fmt.Sprintf("young/1:%d", part), func(b *testing.B) {
			hi := make([]byte, 16)
			benchmarkBounded(b, young, func(step int) (lower, upper []byte) {
				at(key, 1_000_000+step)
				binary.BigEndian.PutUint64(hi, binary.BigEndian.Uint64(key)+1<<63/2500/part)
				return key, hi
			})
		})
	}
	require.NoError(b, young.Close())
}

// benchmarkBounded scans within bounds, each time with a new iterator.
func benchmarkBounded(b *testing.B, db *DB, bounds func(step int) (lo, hi []byte)) {
	step, seen := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		step++
		lo, hi := bounds(step)
		it, err := db.NewIter(&IterOptions{LowerBound: lo, UpperBound: hi})
		if err != nil {
			b.Fatal(err)
		}
		for ok := it.First(); ok; ok = it.Next() {
			seen += len(it.Value())
		}
		if err := it.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

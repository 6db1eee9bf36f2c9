package kv

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
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
	for _, spec := range []string{"none", "cut:6"} {
		benchmarkYoung(b, spec)
	}
}

// benchmarkYoung scans 16 young files whose keys are spread evenly.
func benchmarkYoung(b *testing.B, spec string) {
	const files, perFile = 16, 5000
	p, err := filterpolicy.ParseRange(spec)
	require.NoError(b, err)
	young, err := Open(b.TempDir(), &Options{L0CompactionThreshold: 100, L0SlowdownThreshold: 100, RangeFilter: p})
	require.NoError(b, err)
	key := make([]byte, 16)
	at := func(key []byte, i int) []byte {
		binary.BigEndian.PutUint64(key, uint64(i)*0x9e3779b97f4a7c15)
		return key
	}
	for f := range files {
		for i := range perFile {
			require.NoError(b, young.Set(at(key, f*perFile+i), make([]byte, 100), Async))
		}
		require.NoError(b, young.Flush(b.Context()))
	}
	for _, c := range []struct {
		name  string
		width uint64 // in parts of the mean distance of two keys, of which 1,000 are one
	}{{"0", 1}, {"1", 1000}, {"10", 10_000}, {"100", 100_000}} {
		b.Run("young/"+c.name+"/"+spec, func(b *testing.B) {
			hi := make([]byte, 16)
			benchmarkBounded(b, young, func(step int) (lower, upper []byte) {
				from := binary.BigEndian.Uint64(at(key, 1_000_000+step))
				binary.BigEndian.PutUint64(hi, max(from+1<<63/(files*perFile)/500*c.width, from))
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

package kv

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/sstable"
)

// Scans of a settled store. The limits: some five cache misses for the first entry, as for a
// lookup; then what it takes to bring an entry's bytes near and decode them, 10 to 20 ns; where
// blocks are in files, a pread (1.5 µs, and 0.8 µs for each 4 KiB) and what decoding takes.
func BenchmarkScan(b *testing.B) {
	for _, store := range []struct {
		name string
		o    Options
	}{
		{"mapped", Options{CacheSize: 2 << 20, Compression: sstable.NoCompression, MemoryMap: true}},
		{"cached", Options{}},
		{"cache=2MiB", Options{CacheSize: 2 << 20, Compression: sstable.NoCompression}},
		{"cache=2MiB,snappy", Options{CacheSize: 2 << 20}},
	} {
		db := readBenchStore(b, store.o)
		for _, n := range []int{10, 100} {
			b.Run(fmt.Sprintf("%s/%d", store.name, n), func(b *testing.B) { benchmarkScans(b, db, n) })
		}
		b.Run(store.name+"/full", func(b *testing.B) {
			it, err := db.NewIter(nil)
			require.NoError(b, err)
			for b.Loop() {
				if (!it.Valid() || !it.Next()) && !it.First() {
					b.Fatal(it.Error())
				}
			}
			require.NoError(b, it.Close())
		})
	}
}

// benchmarkScans does scans of n entries, each with a new iterator, in a store of readBenchStore.
func benchmarkScans(b *testing.B, db *DB, n int) {
	var key, value []byte
	step := 0
	b.ReportAllocs()
	for b.Loop() {
		step = (step + 77_773) % readBenchKeys
		key = readBenchKey(key, step)
		it, err := db.NewIter(nil)
		if err != nil {
			b.Fatal(err)
		}
		for i, ok := 0, it.SeekGE(key); ok && i < n; i, ok = i+1, it.Next() {
			value = append(value[:0], it.Value()...)
		}
		if err := it.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// Scans of 50 entries where not all is settled: from 20,000 keys of which some have many
// versions (a Zipf distribution), in a memtable or in files of level 0. The limits:
// settled, what the entries' bytes cost to copy and decode; otherwise a comparison of keys for each
// entry and level of the merge's tree, and a search for each key with many versions.
func BenchmarkScanUnsettled(b *testing.B) {
	const n, updates = 20_000, 60_000
	for _, c := range []struct {
		name    string
		updates int
		flushes int // of the updates
	}{
		{"settled", 0, 0},
		{"memtable", updates, 0},
		{"level0=8", updates, 8},
	} {
		db, err := Open(b.TempDir(), &Options{MemtableSize: 64 << 20, L0CompactionThreshold: 20})
		require.NoError(b, err)
		var key []byte
		value := make([]byte, 100)
		for i := range n {
			key = readBenchKey(key, i)
			require.NoError(b, db.Set(key, value, Async))
		}
		require.NoError(b, db.Flush(b.Context()))
		require.NoError(b, db.Compact(b.Context(), nil, nil))
		rng := rand.New(rand.NewPCG(1, 2))
		zipf := rand.NewZipf(rng, 1.2, 4, n-1)
		for i := range c.updates {
			key = readBenchKey(key, int(zipf.Uint64()))
			require.NoError(b, db.Set(key, value, Async))
			if c.flushes > 0 && i%(c.updates/c.flushes) == c.updates/c.flushes-1 {
				require.NoError(b, db.Flush(b.Context()))
			}
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				key = readBenchKey(key, int(zipf.Uint64()))
				it, err := db.NewIter(nil)
				if err != nil {
					b.Fatal(err)
				}
				for i, ok := 0, it.SeekGE(key); ok && i < 50; i, ok = i+1, it.Next() {
					value = append(value[:0], it.Value()...)
				}
				if err := it.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
		require.NoError(b, db.Close())
	}
}

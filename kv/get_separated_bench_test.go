package kv

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/turns"
	"github.com/siftkv/siftkv/sstable"
)

// separatedSizes are the lengths of values of which there are benchmarks, in bytes, and how many there are of each.
var separatedSizes = []struct {
	name       string
	size, keys int
}{{"1KB", 1000, 40_000}, {"16KB", 16 << 10, 4000}, {"200KB", 200 << 10, 400}}

// eachValue calls set for each key of a benchmark, with a value that does not compress.
func eachValue(b *testing.B, size, keys int, set func(key, value []byte) error) {
	value, rng := make([]byte, size), rand.New(rand.NewPCG(1, 2))
	var key []byte
	for i := range keys {
		key = readBenchKey(key, i)
		for j := range value {
			value[j] = byte(rng.Uint32())
		}
		require.NoError(b, set(key, value))
	}
}

// largeValues is a settled store of so many values.
func largeValues(b *testing.B, size, keys int, o Options) *DB {
	b.Helper()
	db, err := Open(b.TempDir(), &o)
	require.NoError(b, err)
	eachValue(b, size, keys, func(k, v []byte) error { return db.Set(k, v, Async) })
	require.NoError(b, db.Compact(b.Context(), nil, nil))
	b.Cleanup(func() { require.NoError(b, db.Close()) })
	return db
}

// largeStores are the stores that benchmarks of large values compare: of blocks that are in the system's memory, and
// of blocks that are in the cache too, with values in tables and in blob files.
var largeStores = []struct {
	name string
	o    Options
}{
	{"inline", Options{CacheSize: 4 << 20}},
	{"separated", Options{CacheSize: 4 << 20, SeparateFrom: 512}},
	{"inline,cached", Options{CacheSize: 256 << 20}},
	{"separated,cached", Options{CacheSize: 256 << 20, SeparateFrom: 512}},
	{"inline,mapped", Options{CacheSize: 4 << 20, Compression: sstable.NoCompression, MemoryMap: true}},
}

// inTurn calls get for keys in another order than theirs, and reports what a call takes of processors.
func inTurn(b *testing.B, keys int, get func(key []byte) int) {
	var key []byte
	call, i := func() int {
		return get(key)
	}, 0
	for i = range keys { // to have in memory what fits
		key = readBenchKey(key, i)
		call()
	}
	b.ReportAllocs()
	began, n := float64(turns.ProcessorTime()), 0
	for b.Loop() {
		i = (i + 7919) % keys
		n++
		if key = readBenchKey(key, i); call() == 0 {
			b.Fatal("no value")
		}
	}
	b.ReportMetric((float64(turns.ProcessorTime())-began)/float64(n), "cpu-ns/op")
}

// BenchmarkLargeGet looks up values in tables and in blob files. `kvbench compare --workload large-get` has other
// stores.
func BenchmarkLargeGet(b *testing.B) {
	for _, s := range separatedSizes {
		for _, store := range largeStores {
			db := largeValues(b, s.size, s.keys, store.o)
			b.Run(fmt.Sprintf("%s/%s/get", s.name, store.name), func(b *testing.B) {
				inTurn(b, s.keys, func(key []byte) int {
					v, err := db.Get(key)
					if err != nil {
						b.Fatal(err)
					}
					return len(v)
				})
			})
			b.Run(fmt.Sprintf("%s/%s/append", s.name, store.name), func(b *testing.B) {
				dst := make([]byte, 0, s.size)
				inTurn(b, s.keys, func(key []byte) int {
					var err error
					if dst, err = db.AppendGet(dst[:0], key); err != nil {
						b.Fatal(err)
					}
					return len(dst)
				})
			})
		}
	}
}

package engine

import (
	"encoding/binary"
	"flag"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/turns"
)

var uncachedKeys = flag.Int("uncached-keys", 300_000, "keys of BenchmarkUncachedGet; docs/performance.md has 3,000,000")

// BenchmarkUncachedGet looks keys up that are there, in stores without compression whose
// files the system has in memory, through a cache of a tenth of the data: of SiftKV and of
// bbolt in turns, so that what else the machine does befalls both. It reports the processor
// time of a lookup, and how many times that of bbolt it is. The limit is a pread
// of a block, which bbolt, whose file is mapped, does not need.
func BenchmarkUncachedGet(b *testing.B) {
	n := *uncachedKeys
	s := Settings{CacheBytes: int64(n) * 116 / 10, MemtableBytes: 16 << 20, BlockBytes: 4096, Compression: "none",
		Compactions: 2, BatchKeys: 1000, Durability: Soon}
	names := []string{"siftkv", "bbolt"}
	readers := make([]Reader, len(names))
	sorted := make([][]byte, n)
	for i := range sorted {
		sorted[i] = scattered(nil, i)
	}
	slices.SortFunc(sorted, slices.Compare)
	for i, name := range names {
		store, err := Open(name, filepath.Join(b.TempDir(), name), s)
		require.NoError(b, err)
		value := make([]byte, 100)
		for _, k := range sorted {
			copy(value, k)
			require.NoError(b, store.Put(k, value))
		}
		require.NoError(b, store.Settle(b.Context()))
		readers[i], err = store.NewReader(Get, Existing)
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, store.Close()) })
	}
	const turn = 2000 // lookups
	key, value, step := make([]byte, 0, 16), make([]byte, 0, 100), 0
	lookUp := func(r Reader, lookups int) float64 {
		before := turns.ProcessorTime()
		for range lookups {
			step = (step + 1_777_773) % n
			key = scattered(key[:0], step)
			var ok bool
			var err error
			if value, ok, err = r.Get(value[:0], key); !ok || err != nil || len(value) != 100 {
				b.Fatal(ok, err)
			}
		}
		return float64(turns.ProcessorTime() - before)
	}
	for _, r := range readers {
		lookUp(r, n/2) // what is cached is what will be
	}
	var spent [2]float64
	for b.Loop() {
		for i, r := range readers {
			spent[i] += lookUp(r, turn)
		}
	}
	for i, name := range names {
		b.ReportMetric(spent[i]/float64(b.N*turn), name+"-cpu-ns")
	}
	b.ReportMetric(spent[0]/spent[1], "x-bbolt")
}

// scattered appends the i-th of many keys that follow no order.
func scattered(dst []byte, i int) []byte {
	h := uint64(i+1) * 0x9e3779b97f4a7c15
	h = (h ^ h>>29) * 0xbf58476d1ce4e5b9
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, h^h>>32), h)
}

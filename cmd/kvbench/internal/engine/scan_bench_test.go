package engine

import (
	"encoding/binary"
	"flag"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/internal/turns"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

var scanStores = flag.String("scan-stores", "",
	"directory where BenchmarkScanBesideBBolt keeps its stores for the next run")

const (
	scanKeys  = 3_000_000
	scanBatch = 100_000
)

// BenchmarkScanBesideBBolt scans the same keys in SiftKV and in bbolt, in turns and in one
// process, so that both have the same machine at the same time. It reports the median processor
// time of a scan in each, and the median of their ratios.
func BenchmarkScanBesideBBolt(b *testing.B) {
	dir := *scanStores
	if dir == "" {
		dir = b.TempDir()
	}
	source, err := keys.NewGenerated(scanKeys, 16, 1)
	require.NoError(b, err)
	other, err := openBBolt(filepath.Join(dir, "bbolt"), Settings{BatchKeys: scanBatch})
	require.NoError(b, err)
	fillForScans(b, other, source)
	for _, c := range []struct {
		name  string
		files string // stores with the same files
		o     kv.Options
	}{
		{"mapped", "none", kv.Options{Compression: sstable.NoCompression, MemoryMap: true}},
		{"cached", "none", kv.Options{Compression: sstable.NoCompression, CacheSize: 1 << 30}},
		{"cache=64MiB", "none", kv.Options{Compression: sstable.NoCompression}},
		{"snappy", "snappy", kv.Options{CacheSize: 1 << 30}},
		{"snappy,cache=64MiB", "snappy", kv.Options{}},
		{"snappy,cache=64MiB,runs=4", "runs", kv.Options{L0CompactionThreshold: 20}},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.o.MemtableSize = 16 << 20
			db, err := kv.Open(filepath.Join(dir, c.files), &c.o)
			require.NoError(b, err)
			store := newSiftKV(db, scanBatch)
			if fillForScans(b, store, source) && c.files == "runs" {
				addRuns(b, db, source)
			}
			for range 2 { // pages of mapped files are there, and what fits the cache is in it
				require.NoError(b, store.Scan(nil, 0, func(_, _ []byte) {}))
				require.NoError(b, other.Scan(nil, 0, func(_, _ []byte) {}))
			}
			for _, s := range []struct{ limit, scans int }{{10, 4000}, {100, 1000}, {0, 1}} {
				name := fmt.Sprint("scan=", s.limit)
				if s.limit == 0 {
					name = "full"
				}
				b.Run(name, func(b *testing.B) { compareScans(b, [2]Live{store, other}, source, s.limit, s.scans) })
			}
			require.NoError(b, db.Close())
		})
	}
	require.NoError(b, other.Close())
}

// fillForScans loads a store that is empty, and reports whether it was.
func fillForScans(b *testing.B, s Live, source *keys.Generated) bool {
	b.Helper()
	n := 0
	require.NoError(b, s.Scan(nil, 1, func(_, _ []byte) { n++ }))
	if n > 0 {
		return false
	}
	values, err := keys.NewValues(100, 1)
	require.NoError(b, err)
	var key, value []byte
	for i := range scanKeys {
		key = source.AppendPresent(key[:0], i)
		value = values.Append(value[:0], key)
		require.NoError(b, s.Put(key, value))
	}
	require.NoError(b, s.Settle(b.Context()))
	return true
}

// addRuns adds three runs to a settled store: what an update of every tenth key leaves.
func addRuns(b *testing.B, db *kv.DB, source *keys.Generated) {
	b.Helper()
	values, err := keys.NewValues(100, 1)
	require.NoError(b, err)
	var key, value []byte
	for run := range 3 {
		for i := run; i < scanKeys; i += 30 {
			key = source.AppendPresent(key[:0], i)
			value = values.Append(value[:0], key)
			require.NoError(b, db.Set(key, value, kv.Async))
		}
		require.NoError(b, db.Flush(b.Context()))
	}
	require.Len(b, db.Metrics().Runs, 4)
}

// compareScans does rounds of scans of up to limit entries from the same random keys on in both
// stores. No limit is 0.
func compareScans(b *testing.B, stores [2]Live, source *keys.Generated, limit, scans int) {
	order := keys.NewPermutation(scanKeys, 2)
	at := 0
	var took [2][]float64
	var ratios []float64
	starts := make([][]byte, scans)
	round := func(n int) float64 {
		var sum uint64
		visit := func(_, value []byte) { sum += binary.LittleEndian.Uint64(value) }
		runtime.GC()
		before := turns.ProcessorTime()
		for _, start := range starts {
			if err := stores[n].Scan(start, limit, visit); err != nil {
				b.Fatal(err)
			}
		}
		return float64(turns.ProcessorTime()-before) / float64(scans)
	}
	for warm := true; b.Loop(); warm = false {
		for i := range starts {
			starts[i] = nil
			if limit > 0 {
				starts[i] = source.AppendInOrder(nil, order.At(at%scanKeys))
				at++
			}
		}
		ours, theirs := round(0), round(1)
		if warm && b.N > 1 {
			continue
		}
		took[0], took[1] = append(took[0], ours), append(took[1], theirs)
		ratios = append(ratios, ours/theirs)
	}
	for i, values := range [][]float64{took[0], took[1], ratios} {
		if len(values) == 0 {
			return
		}
		slices.Sort(values)
		b.ReportMetric(values[len(values)/2], []string{"siftkv-ns", "bbolt-ns", "siftkv/bbolt"}[i])
	}
	b.ReportMetric(0, "ns/op")
}

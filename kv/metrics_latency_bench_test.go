package kv

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkLatencyHistograms shows what the histograms cost. A turn of a store without them and one
// of a store with them follow each other, some thousand operations each: it reports the median time of an operation of
// both, and the median of the differences.
func BenchmarkLatencyHistograms(b *testing.B) {
	const n = 5000
	lookups := func(key func(i int) []byte) func(*DB) {
		keys := make([][]byte, n)
		for i := range keys {
			keys[i] = key(i)
		}
		dst := make([]byte, 0, 200)
		return func(db *DB) {
			for _, k := range keys {
				dst, _ = db.AppendGet(dst[:0], k)
			}
		}
	}
	settled := func(o *Options) *DB { return settledStore(b, n, o) }
	b.Run("absent", func(b *testing.B) {
		benchmarkPairs(b, n, settled, lookups(func(i int) []byte { return append(settledKey(i), 'x') }))
	})
	b.Run("present", func(b *testing.B) { benchmarkPairs(b, n, settled, lookups(settledKey)) })
	b.Run("set", func(b *testing.B) {
		key, value := make([]byte, 8), make([]byte, 100)
		dir := b.TempDir()
		open := func(o *Options) *DB {
			o.MemtableSize = 64 << 20
			dir += "x"
			return openDir(b, dir, o)
		}
		benchmarkPairs(b, 1000, open, func(db *DB) {
			r := rand.New(rand.NewPCG(1, 2))
			for range 1000 {
				binary.BigEndian.PutUint64(key, r.Uint64N(1<<10))
				require.NoError(b, db.Set(key, value, Async))
			}
		})
	})
}

// benchmarkPairs measures turns of n operations of a store without histograms and one with them.
func benchmarkPairs(b *testing.B, n int, open func(*Options) *DB, turn func(*DB)) {
	off, on := open(&Options{}), open(&Options{LatencyHistograms: true})
	timed := func(db *DB) float64 {
		start := time.Now()
		turn(db)
		return float64(time.Since(start)) / float64(n)
	}
	var offs, ons, more []float64
	for i := 0; b.Loop(); i++ {
		var x, y float64
		if i/2%2 == 0 {
			x, y = timed(off), timed(on)
		} else {
			y, x = timed(on), timed(off)
		}
		offs, ons, more = append(offs, x), append(ons, y), append(more, y-x)
		without, with := &off.counters, &on.counters
		without.Latencies, with.Latencies = with.Latencies, without.Latencies // the other has its place in memory
		off, on = on, off
	}
	median := func(v []float64) float64 {
		slices.Sort(v)
		return v[len(v)/2]
	}
	b.ReportMetric(median(offs), "off-ns")
	b.ReportMetric(median(ons), "on-ns")
	b.ReportMetric(median(more), "more-ns")
	require.NoError(b, off.Close())
	require.NoError(b, on.Close())
}

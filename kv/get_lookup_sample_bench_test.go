package kv

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkLookupSample shows what Options.LookupSample adds to a lookup: of a key in a memtable, in a cached
// block, and of one that filters exclude, all of which are asked for equally often; and of keys of which few are
// popular. The sample has been full before. Each turn is one pass over the keys with the sample and one without, in
// the same store; off-ns and on-ns are medians of passes, and one-in says of how many keys one is sampled.
func BenchmarkLookupSample(b *testing.B) {
	const n, asked, warm = 200_000, 1 << 13, 1 << 22
	for _, where := range []string{"memtable", "cached", "absent", "zipf"} {
		db := openMem(b, &Options{CacheSize: 256 << 20, MemtableSize: 128 << 20, LookupSample: 1 << 20})
		for i := range n {
			require.NoError(b, db.Set(readBenchKey(nil, 2*i), make([]byte, 100), Async))
		}
		if where != "memtable" {
			require.NoError(b, db.Compact(b.Context(), nil, nil))
		}
		rng := rand.New(rand.NewPCG(1, 1))
		zipf := rand.NewZipf(rng, 1.1, 1, n-1)
		keys := make([][]byte, asked)
		for i := range keys {
			k := 2 * rng.IntN(n)
			switch where {
			case "absent":
				k++
			case "zipf":
				k = 2 * int(zipf.Uint64()*7919%n)
			}
			keys[i] = readBenchKey(nil, k)
		}
		value := make([]byte, 0, 200)
		pass := func() time.Duration {
			began := time.Now()
			for _, key := range keys {
				value, _ = db.AppendGet(value[:0], key)
			}
			return time.Since(began)
		}
		for range warm / asked {
			pass()
		}
		b.Run(where, func(b *testing.B) {
			var off, on []time.Duration
			for b.Loop() {
				db.watch.Threshold.Store(0)
				off = append(off, pass())
				db.watch.Update()
				on = append(on, pass())
			}
			for unit, passes := range map[string][]time.Duration{"off-ns": off, "on-ns": on} {
				slices.Sort(passes)
				b.ReportMetric(float64(passes[len(passes)/2])/asked, unit)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(db.watch.Sampler().Take().OneIn, "one-in")
		})
		require.NoError(b, db.Close())
	}
}

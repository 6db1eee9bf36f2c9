package kv

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkAppendGet looks up keys that are there, and keys between them, in stores of
// every kind of compaction, with all blocks cached.
func BenchmarkAppendGet(b *testing.B) {
	const n = 200_000
	key := func(dst []byte, i int) []byte { return fmt.Appendf(dst[:0], "key%010d", i) }
	for kind := range numCompactions {
		db := openMem(b, &Options{Compaction: kind, CacheSize: 256 << 20, MemtableSize: 32 << 20,
			TargetFileSize: 1 << 20, BaseLevelSize: 1 << 20})
		value := make([]byte, 100)
		for at, i := range rand.New(rand.NewPCG(1, 1)).Perm(n) {
			require.NoError(b, db.Set(key(nil, 2*i), value, Async))
			if at%(n/23) == 0 {
				settleStore(b, db) // so that the shape is the same every time
			}
		}
		settleStore(b, db)
		runs, files := 0, 0
		for _, l := range db.Metrics().Levels {
			runs += l.Runs
			files += l.Files
		}
		keys := make([][]byte, 1<<14)
		for absent, name := range []string{"present", "absent"} {
			rng := rand.New(rand.NewPCG(2, 2))
			for i := range keys {
				keys[i] = key(nil, 2*rng.IntN(n)+absent)
			}
			dst := make([]byte, 0, 200)
			for _, k := range keys {
				dst, _ = db.AppendGet(dst[:0], k)
			}
			b.Run(fmt.Sprintf("%v/%s", kind, name), func(b *testing.B) {
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					dst, _ = db.AppendGet(dst[:0], keys[i&(len(keys)-1)])
					i++
				}
				b.ReportMetric(float64(runs), "runs")
				b.ReportMetric(float64(files), "files")
			})
		}
	}
}

package kv

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/siftkv/siftkv/sstable"
	"github.com/stretchr/testify/require"
)

// BenchmarkFlush flushes 64 MiB of entries of 100 bytes, half of them compressible, in random
// order, with two threads.
func BenchmarkFlush(b *testing.B) {
	for _, c := range []sstable.Compression{sstable.Snappy, sstable.NoCompression} {
		b.Run(fmt.Sprint("compression=", c), func(b *testing.B) {
			db, err := Open(b.TempDir(), &Options{MemtableSize: 80 << 20, Compression: c, L0CompactionThreshold: 1000,
				L0SlowdownThreshold: 1000, L0StopThreshold: 1001})
			require.NoError(b, err)
			rng := rand.New(rand.NewPCG(1, 2))
			for b.Loop() {
				b.StopTimer()
				for size := 0; size < 64<<20; {
					batch := db.NewBatch()
					for range 500 {
						value := append(randomBytes(rng, 50), make([]byte, 50)...)
						require.NoError(b, batch.Set(fmt.Appendf(nil, "key%013d", rng.Uint64()%1e13), value))
						size += 116 + 40
					}
					require.NoError(b, batch.Commit(NoSync))
				}
				b.StartTimer()
				require.NoError(b, db.Flush(b.Context()))
			}
			b.ReportMetric(float64(db.Metrics().Levels[0].Files)/float64(b.N), "files/op")
			require.NoError(b, db.Close())
		})
	}
}

// BenchmarkGetOverLevel0 looks up keys that are there, and keys between them, in a store that has
// six flushes in level 0, each over all keys, and all blocks in memory.
func BenchmarkGetOverLevel0(b *testing.B) {
	db := openMem(b, &Options{L0CompactionThreshold: 1000, L0SlowdownThreshold: 1000, L0StopThreshold: 1001,
		CacheSize: 256 << 20})
	const n = 100_000
	key := func(i int) []byte { return fmt.Appendf(nil, "key%010d", i) }
	for flush := range 6 {
		for i := flush; i < n; i += 6 {
			require.NoError(b, db.Set(key(2*i), make([]byte, 100), NoSync))
		}
		require.NoError(b, db.Flush(b.Context()))
	}
	for absent, name := range []string{"present", "absent"} {
		rng := rand.New(rand.NewPCG(2, 2))
		keys := make([][]byte, 1<<14)
		for i := range keys {
			keys[i] = key(2*rng.IntN(n) + absent)
		}
		dst := make([]byte, 0, 200)
		for _, k := range keys {
			dst, _ = db.AppendGet(dst[:0], k)
		}
		b.Run(name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				dst, _ = db.AppendGet(dst[:0], keys[i&(len(keys)-1)])
			}
		})
	}
}

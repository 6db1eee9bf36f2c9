package kv

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkCommitLarge commits values of 16 KiB: as they are, to be separated by flushes, and at commit.
func BenchmarkCommitLarge(b *testing.B) {
	modes := []struct {
		name     string
		from     int
		atCommit bool
	}{{"inline", 0, false}, {"flush", 4 << 10, false}, {"commit", 4 << 10, true}}
	for _, o := range []*WriteOptions{NoSync, Sync} {
		for _, writers := range []int{1, 16} {
			for _, m := range modes {
				b.Run(fmt.Sprintf("sync=%v/writers=%d/%s", o == Sync, writers, m.name), func(b *testing.B) {
					db, err := Open(b.TempDir(), &Options{SeparateFrom: m.from, SeparateAtCommit: m.atCommit})
					if err != nil {
						b.Fatal(err)
					}
					value := randomBytes(rand.New(rand.NewPCG(1, 1)), 16<<10)
					b.SetBytes(int64(len(value)))
					b.SetParallelism(max(1, writers/2))
					var n atomic.Uint64
					began := time.Now()
					set := func() {
						i := n.Add(1)
						key := binary.BigEndian.AppendUint64(nil, i*0x9e3779b97f4a7c15)
						if err := db.Set(key, value, o); err != nil {
							b.Error(err)
						}
					}
					b.ResetTimer()
					if writers == 1 {
						for range b.N {
							set()
						}
					} else {
						b.RunParallel(func(pb *testing.PB) {
							for pb.Next() {
								set()
							}
						})
					}
					b.StopTimer()
					b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "commits/s")
					if err := db.Close(); err != nil {
						b.Fatal(err)
					}
				})
			}
		}
	}
}

package kv

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/turns"
)

// BenchmarkGetGoroutines looks keys up in many goroutines, on 1 to 16 threads of Go
// whatever the number of processors: what readers share, and locks that they spin on, would
// cost more with each. It reports lookups per second by the clock, and the processor time
// of one. The limit is the number of processors times BenchmarkRead.
func BenchmarkGetGoroutines(b *testing.B) {
	for _, store := range []struct {
		name  string
		o     Options
		first int
	}{
		{"cached", Options{}, 0},
		{"uncached", Options{CacheSize: 2 << 20}, 0},
		{"absent", Options{}, readBenchKeys},
	} {
		db := readBenchStore(b, store.o)
		for _, procs := range []int{1, 2, 4, 16} {
			for _, n := range []int{1, 8, 64, 1024} {
				b.Run(fmt.Sprintf("%s/procs=%d/goroutines=%d", store.name, procs, n), func(b *testing.B) {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
					getInGoroutines(b, db, n, store.first)
				})
			}
		}
	}
}

// getInGoroutines makes b.N lookups in n goroutines.
func getInGoroutines(b *testing.B, db *DB, n, first int) {
	const turn = 100 // lookups that a goroutine takes at a time
	var left atomic.Int64
	left.Store(int64(b.N))
	var readers sync.WaitGroup
	cpu, began := float64(turns.ProcessorTime()), time.Now()
	for range n {
		readers.Go(func() {
			var key, value []byte
			rng := rand.New(rand.NewPCG(rand.Uint64(), 1))
			for left.Add(-turn) > -turn {
				for range turn {
					key = readBenchKey(key, first+rng.IntN(readBenchKeys))
					var err error
					if value, err = db.AppendGet(value[:0], key); (err == nil) != (first == 0) {
						b.Error(err)
						return
					}
				}
			}
		})
	}
	readers.Wait()
	lookups := float64((b.N + turn - 1) / turn * turn)
	b.ReportMetric(lookups/time.Since(began).Seconds(), "gets/s")
	b.ReportMetric((float64(turns.ProcessorTime())-cpu)/lookups, "cpu-ns/get")
	require.False(b, b.Failed())
}

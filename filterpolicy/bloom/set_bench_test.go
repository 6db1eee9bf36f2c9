package bloom_test

import (
	"sync/atomic"
	"testing"

	"github.com/siftkv/siftkv/filterpolicy/bloom"
	"github.com/siftkv/siftkv/filterpolicy/internal/settest"
)

func BenchmarkSet(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		settest.Benchmark(b, "set", family, n, 0.01)
		settest.Benchmark(b, "concurrent", concurrent, n, 0.01)
	}
}

// All processors add and ask at once.
func BenchmarkConcurrentSet(b *testing.B) {
	s, err := bloom.NewConcurrent(1_000_000, 0.01)
	if err != nil {
		b.Fatal(err)
	}
	salts := atomic.Uint64{}
	b.RunParallel(func(pb *testing.PB) {
		salt := salts.Add(1)
		for i := uint64(0); pb.Next(); i++ {
			s.AddHash(settest.Hash(salt, i%100_000))
			s.ContainsHash(settest.Hash(salt+1, i%100_000))
		}
	})
}

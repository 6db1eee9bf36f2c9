package conformance

import (
	"sync/atomic"
	"testing"

	"github.com/siftkv/siftkv/filterpolicy/bloom"
)

func BenchmarkBloomSet(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		benchmarkSets(b, "set", bloomFamily, n, 0.01)
		benchmarkSets(b, "concurrent", bloomConcurrent, n, 0.01)
	}
}

// All processors add and ask at once.
func BenchmarkBloomConcurrentSet(b *testing.B) {
	s, err := bloom.NewConcurrent(1_000_000, 0.01)
	if err != nil {
		b.Fatal(err)
	}
	salts := atomic.Uint64{}
	b.RunParallel(func(pb *testing.PB) {
		salt := salts.Add(1)
		for i := uint64(0); pb.Next(); i++ {
			s.AddHash(Hash(salt, i%100_000))
			s.ContainsHash(Hash(salt+1, i%100_000))
		}
	})
}

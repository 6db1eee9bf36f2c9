package bloom_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/siftkv/siftkv/filterpolicy/bloom"
	"github.com/siftkv/siftkv/filterpolicy/internal/settest"
)

// A hashSet is what both kinds of sets can do.
type hashSet interface {
	AddHash(h uint64)
	ContainsHash(h uint64) bool
}

func benchSets(b *testing.B, n int) map[string]hashSet {
	b.Helper()
	return map[string]hashSet{"set": newSet(b, n, 0.01), "concurrent": newConcurrent(b, n, 0.01)}
}

func BenchmarkSet(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		for name, s := range benchSets(b, n) {
			b.Run(fmt.Sprintf("add/%s/%d", name, n), func(b *testing.B) {
				i := uint64(0)
				for b.Loop() {
					s.AddHash(settest.Hash(1, i%uint64(n)))
					i++
				}
			})
			for i := range uint64(n) {
				s.AddHash(settest.Hash(1, i))
			}
			for what, salt := range map[string]uint64{"present": 1, "absent": 2} {
				b.Run(fmt.Sprintf("%s/%s/%d", what, name, n), func(b *testing.B) {
					i := uint64(0)
					for b.Loop() {
						s.ContainsHash(settest.Hash(salt, i%uint64(n)))
						i++
					}
				})
			}
		}
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

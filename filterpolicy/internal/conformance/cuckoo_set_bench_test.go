package conformance

import (
	"fmt"
	"testing"

	"github.com/siftkv/siftkv/filterpolicy/cuckoo"
)

// cuckooBenchmarkSet runs a function over sets of several shapes, filled to what they were made
// for; keys 0 to n-1 of the input are in.
func cuckooBenchmarkSet(b *testing.B, run func(b *testing.B, s *cuckoo.Set, at func(uint64) uint64, n uint64)) {
	b.Helper()
	for _, n := range []uint64{10_000, 1_000_000} {
		for _, o := range []cuckoo.Options{{Bits: 8, Slots: 4}, {Bits: 12, Slots: 2}, {Bits: 12, Slots: 4},
			{Bits: 12, Slots: 8}, {Bits: 16, Slots: 4}} {
			name := fmt.Sprintf("keys=%d/bits=%d/slots=%d", n, o.Bits, o.Slots)
			b.Run(name, func(b *testing.B) {
				s := cuckooNewSet(b, int(n), 0, o)
				for i := range n {
					if err := s.AddHash(Good(1).At(i)); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportAllocs()
				run(b, s, Good(1).At, n)
			})
		}
	}
}

// One operation fills a set; the time per key is reported beside.
func BenchmarkCuckooSetAdd(b *testing.B) {
	cuckooBenchmarkSet(b, func(b *testing.B, s *cuckoo.Set, at func(uint64) uint64, n uint64) {
		b.Helper()
		for b.Loop() {
			s.Reset()
			for i := range n {
				_ = s.AddHash(at(i))
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
	})
}

func BenchmarkCuckooSetContainsPresent(b *testing.B) { cuckooBenchmarkContains(b, 0) }
func BenchmarkCuckooSetContainsAbsent(b *testing.B)  { cuckooBenchmarkContains(b, 1<<39) }

func cuckooBenchmarkContains(b *testing.B, offset uint64) {
	b.Helper()
	cuckooBenchmarkSet(b, func(b *testing.B, s *cuckoo.Set, at func(uint64) uint64, n uint64) {
		b.Helper()
		i, found := uint64(0), 0
		for b.Loop() {
			if s.ContainsHash(at(offset + i)) {
				found++
			}
			if i++; i == n {
				i = 0
			}
		}
		_ = found
	})
}

// A key goes and comes back, in a set at its capacity.
func BenchmarkCuckooSetRemoveAdd(b *testing.B) {
	cuckooBenchmarkSet(b, func(b *testing.B, s *cuckoo.Set, at func(uint64) uint64, n uint64) {
		b.Helper()
		i := uint64(0)
		for b.Loop() {
			s.RemoveHash(at(i))
			_ = s.AddHash(at(i))
			if i++; i == n {
				i = 0
			}
		}
	})
}

func BenchmarkCuckooSetContainsInChain(b *testing.B) {
	s := cuckooNewSet(b, 100_000, 0.01, cuckoo.Options{Grow: 2})
	for i := range uint64(1_000_000) {
		_ = s.AddHash(Good(1).At(i))
	}
	i := uint64(0)
	for b.Loop() {
		s.ContainsHash(Good(1).At(1<<39 + i))
		i++
	}
	b.ReportMetric(float64(s.Tables()), "tables")
}

package cuckoo_test

import (
	"fmt"
	"testing"

	"github.com/siftkv/siftkv/filterpolicy/cuckoo"
	"github.com/siftkv/siftkv/filterpolicy/internal/filtertest"
)

// benchmarkSet runs a function over sets of several shapes, filled to what they were made
// for; keys 0 to n-1 of the input are in.
func benchmarkSet(b *testing.B, run func(b *testing.B, s *cuckoo.Set, at func(uint64) uint64, n uint64)) {
	b.Helper()
	for _, n := range []uint64{10_000, 1_000_000} {
		for _, o := range []cuckoo.Options{{Bits: 8, Slots: 4}, {Bits: 12, Slots: 2}, {Bits: 12, Slots: 4},
			{Bits: 12, Slots: 8}, {Bits: 16, Slots: 4}} {
			name := fmt.Sprintf("keys=%d/bits=%d/slots=%d", n, o.Bits, o.Slots)
			b.Run(name, func(b *testing.B) {
				s := newSet(b, int(n), 0, o)
				for i := range n {
					if err := s.AddHash(filtertest.Good(1).At(i)); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportAllocs()
				run(b, s, filtertest.Good(1).At, n)
			})
		}
	}
}

// One operation fills a set; the time per key is reported beside.
func BenchmarkSetAdd(b *testing.B) {
	benchmarkSet(b, func(b *testing.B, s *cuckoo.Set, at func(uint64) uint64, n uint64) {
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

func BenchmarkSetContainsPresent(b *testing.B) { benchmarkContains(b, 0) }
func BenchmarkSetContainsAbsent(b *testing.B)  { benchmarkContains(b, 1<<39) }

func benchmarkContains(b *testing.B, offset uint64) {
	b.Helper()
	benchmarkSet(b, func(b *testing.B, s *cuckoo.Set, at func(uint64) uint64, n uint64) {
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
func BenchmarkSetRemoveAdd(b *testing.B) {
	benchmarkSet(b, func(b *testing.B, s *cuckoo.Set, at func(uint64) uint64, n uint64) {
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

func BenchmarkSetContainsInChain(b *testing.B) {
	s := newSet(b, 100_000, 0.01, cuckoo.Options{Grow: 2})
	for i := range uint64(1_000_000) {
		_ = s.AddHash(filtertest.Good(1).At(i))
	}
	i := uint64(0)
	for b.Loop() {
		s.ContainsHash(filtertest.Good(1).At(1<<39 + i))
		i++
	}
	b.ReportMetric(float64(s.Tables()), "tables")
}

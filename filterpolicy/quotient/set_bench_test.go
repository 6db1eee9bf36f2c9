package quotient_test

import (
	"testing"

	"github.com/siftkv/siftkv/filterpolicy/internal/filtertest"
)

// A set of 100 000 keys at its capacity, the slowest it gets.
func BenchmarkSet(b *testing.B) {
	const n = 100_000
	s := newSet(b, n, 0.01, 0)
	fill(b, s, 0, n)
	i := uint64(0)
	b.Run("present", func(b *testing.B) {
		for b.Loop() {
			s.ContainsHash(filtertest.Good(1).At(i % n))
			i++
		}
	})
	b.Run("absent", func(b *testing.B) {
		for b.Loop() {
			s.ContainsHash(filtertest.Good(2).At(i))
			i++
		}
	})
	b.Run("remove and add", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			h := filtertest.Good(1).At(i % n)
			s.RemoveHash(h)
			_ = s.AddHash(h)
			i++
		}
	})
	b.Run("fill", func(b *testing.B) {
		for b.Loop() {
			s.Reset()
			fill(b, s, 0, n)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/key")
	})
}

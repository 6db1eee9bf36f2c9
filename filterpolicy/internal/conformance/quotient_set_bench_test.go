package conformance

import (
	"testing"
)

// A set of 100 000 keys at its capacity, the slowest it gets.
func BenchmarkQuotientSet(b *testing.B) {
	const n = 100_000
	s := quotientNewSet(b, n, 0.01, 0)
	quotientFill(b, s, 0, n)
	i := uint64(0)
	b.Run("present", func(b *testing.B) {
		for b.Loop() {
			s.ContainsHash(Good(1).At(i % n))
			i++
		}
	})
	b.Run("absent", func(b *testing.B) {
		for b.Loop() {
			s.ContainsHash(Good(2).At(i))
			i++
		}
	})
	b.Run("remove and add", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			h := Good(1).At(i % n)
			s.RemoveHash(h)
			_ = s.AddHash(h)
			i++
		}
	})
	b.Run("fill", func(b *testing.B) {
		for b.Loop() {
			s.Reset()
			quotientFill(b, s, 0, n)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/key")
	})
}

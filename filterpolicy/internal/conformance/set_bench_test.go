package conformance

import (
	"fmt"
	"testing"
)

// benchmarkSets measures filling a set with n keys, and asking the full set for
// present and for absent keys. An operation of the first is a whole set; the time
// per key is reported beside it.
func benchmarkSets[P Set](b *testing.B, name string, f Family[P], n int, rate float64) {
	b.Helper()
	s := f.Any().Filled(b, n, rate) // as one kind or another, at the price of a call
	bits := 8 * float64(s.Size()) / float64(n)
	for what, salt := range map[string]uint64{"present": 1, "absent": Absent} {
		b.Run(fmt.Sprintf("%s/%s/%d", what, name, n), func(b *testing.B) {
			i := uint64(0)
			for b.Loop() {
				s.ContainsHash(Hash(salt, i%uint64(n)))
				i++
			}
			b.ReportMetric(bits, "bits/key")
		})
	}
	b.Run(fmt.Sprintf("fill/%s/%d", name, n), func(b *testing.B) {
		for b.Loop() {
			s.Reset()
			Fill(b, s, n)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
	})
}

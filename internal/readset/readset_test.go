package readset

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/stretchr/testify/require"
)

// TestSpans holds the ranges of a set against a set of keys.
func TestSpans(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range 300 {
		r := Set{}
		var want [26]bool
		for range rng.IntN(60) {
			lo, hi := rng.IntN(26), rng.IntN(30)
			s := rangedel.Span{Lo: []byte{byte('a' + lo)}}
			if lo == 0 {
				s.Lo = nil
			}
			if hi < 26 {
				s.Hi = []byte{byte('a' + hi)}
			}
			r.AddSpan(s)
			for k := lo; k < min(hi, 26); k++ {
				want[k] = true
			}
		}
		r.Merge()
		for k := range want {
			key := rangedel.Span{Lo: []byte{byte('a' + k)}, Hi: []byte{byte('a' + k), 0}}
			require.Equal(t, want[k], slices.ContainsFunc(r.Spans,
				func(s rangedel.Span) bool { return s.Contains(key) }))
		}
		for i := 1; i < len(r.Spans); i++ {
			require.Less(t, string(r.Spans[i-1].Hi), string(r.Spans[i].Lo))
		}
	}
}

package conformance

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/cuckoo"
)

// The estimate follows from the state alone, agrees with what is measured and with
// the literature, and does not change the set.
func TestCuckooRateIsTheoriesAndAsking(t *testing.T) {
	for _, o := range []cuckoo.Options{
		{Bits: 4}, {Bits: 8, Slots: 2}, {Bits: 8}, {Bits: 8, Slots: 8}, {Bits: 12}, {Bits: 16, Slots: 2},
	} {
		n := uint64(Share(50_000))
		s := cuckooNewSet(t, int(n), 0, o)
		for i := range n {
			require.NoError(t, s.AddHash(Good(1).At(i)))
		}
		before := s.Len()
		want := s.FalsePositiveRate()
		got := cuckooMeasure(s, Good(1), n, 1_000_000)
		t.Logf("%+v: %.4f %% measured, %.4f %% estimated", o, 100*got.FPR(), 100*want)
		require.InDelta(t, want, got.FPR(), 4*got.Sigma(want))
		require.Equal(t, before, s.Len())
		require.Equal(t, want, s.FalsePositiveRate(), "asking changes nothing")
		cuckooRequireHas(t, s, Good(1), n)

		slots := o.Slots
		if slots == 0 {
			slots = 4
		}
		values := math.Exp2(float64(o.Bits)) - 1
		textbook := 1 - math.Pow(1-1/values, 2*float64(slots)*s.LoadFactor())
		if o.Bits > 4 { // with 15 values many keys share a class, which the textbook does not know
			require.InEpsilon(t, textbook, want, 0.02)
		}
	}
}

// The promised rate holds at the asked capacity and up to the last key that fits, in one
// table as in a chain.
func TestCuckooRateHolds(t *testing.T) {
	in := Good(1)
	for _, rate := range []float64{0.03, 0.01, 0.001, 1e-5} {
		for _, slots := range []int{2, 4, 8} {
			s := cuckooNewSet(t, max(1000, Share(5000)), rate, cuckoo.Options{Slots: slots})
			n := cuckooFill(t, s, in, 0)
			got := cuckooMeasure(s, in, n, 400_000)
			require.LessOrEqual(t, s.FalsePositiveRate(), rate)
			require.LessOrEqual(t, got.FPR(), rate+4*got.Sigma(rate))
		}
		for _, grow := range []int{1, 2, 8} {
			s := cuckooNewSet(t, 500, rate, cuckoo.Options{Grow: grow})
			n := uint64(max(2000, Share(5000)))
			for i := range n {
				require.NoError(t, s.AddHash(in.At(i)))
			}
			want := s.FalsePositiveRate()
			got := cuckooMeasure(s, in, n, 400_000)
			t.Logf("rate %g, grow %d: %d tables, %.2f bits per key, measured %.3g, estimated %.3g",
				rate, grow, s.Tables(), 8*float64(s.Size())/float64(n), got.FPR(), want)
			require.LessOrEqual(t, want, rate)
			require.InDelta(t, want, got.FPR(), 0.02*want+4*got.Sigma(want))
			cuckooRequireHas(t, s, in, n)
		}
	}
}

package conformance

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/scale"
)

// narrowRate asks a filter of random keys for narrow empty ranges anywhere.
func narrowRate(f filterpolicy.RangeFilter, r *rand.Rand, list [][]byte, probes int) Rate {
	var rate Rate
	for rate.Probes < probes {
		lo := drawn(r, 16)
		hi := bytes.Clone(lo)
		hi[9]++
		if empty(lo, hi) || within(list, lo, hi) {
			continue
		}
		rate.Probes++
		if f.MayContainRange(lo, hi) {
			rate.Positives++
		}
	}
	return rate
}

// Size and rate of filters of random keys are those of ExpectedRange: the size within some per cent, the rate within
// four per cent, by which the codes of bytes that were counted in a sample are uneven, and four standard deviations.
func TestRangeTheory(t *testing.T) {
	for _, c := range []struct {
		spec    string
		keys    int
		filters uint64
		size    float64
	}{
		{"cut:0", 100_000, 2, 0.04}, {"cut:4", 100_000, 2, 0.015}, {"cut:6", 100_000, 4, 0.015},
		{"cut:8", 30_000, 4, 0.015}, {"cut:6", 1000, 100, 0.02}, {"cut:10", 100_000, 2, 0.015},
	} {
		filters := uint64(scale.Count(max(int(c.filters)/2, 1), int(c.filters)))
		keys, probes := min(c.keys, mostKeys()), Share(1_000_000)/int(filters)
		want := filterpolicy.ExpectedRange(RangePolicy(t, c.spec), keys)
		var all Rate
		size := 0
		for salt := range filters {
			r := rand.New(rand.NewPCG(1, salt))
			list := keyKinds[0].sorted(r, keys)
			data := BuildRange(t, c.spec, list)
			size += len(data)
			got := narrowRate(OpenRange(t, c.spec, data), r, list, probes)
			all.Probes, all.Positives = all.Probes+got.Probes, all.Positives+got.Positives
		}
		bits := 8 * float64(size) / float64(uint64(keys)*filters)
		t.Logf("%s, %d keys: %.3f bits per key, theory %.3f; %.4f %% of narrow ranges, theory %.4f %%", c.spec, keys,
			bits, want.BitsPerKey, 100*all.FPR(), 100*want.FPR)
		require.InEpsilon(t, want.BitsPerKey, bits, c.size, "%s, %d keys", c.spec, keys)
		require.InDelta(t, want.FPR, all.FPR(), 0.04*want.FPR+4*all.Sigma(want.FPR), "%s, %d keys", c.spec, keys)
	}
}

// What the family is for: at most 14 bits per key for random keys at six bits beyond the cut, and a rate that
// each further bit halves.
func TestCutKeysAreSmall(t *testing.T) {
	list := keyKinds[0].sorted(rand.New(rand.NewPCG(5, 6)), min(100_000, mostKeys()))
	data := BuildRange(t, "cut:6", list)
	require.LessOrEqual(t, 8*float64(len(data))/float64(len(list)), 14.0)
	for m := range 16 {
		less := filterpolicy.ExpectedRange(RangePolicy(t, "cut:"+decimals[m]), 1_000_000).FPR
		more := filterpolicy.ExpectedRange(RangePolicy(t, "cut:"+decimals[m+1]), 1_000_000).FPR
		require.InDelta(t, 2, less/more, 1e-6)
	}
}

var decimals = []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16"}

// Empty ranges as wide as the mean distance of two keys are passed more often than narrow ones, but not twice as often.
func TestRangeRateOfAWholeGap(t *testing.T) {
	const keys, gap = 1 << 14, 1 << 50 // of the first eight bytes
	r := rand.New(rand.NewPCG(7, 8))
	list := keyKinds[0].sorted(r, keys)
	f := OpenRange(t, "cut:6", BuildRange(t, "cut:6", list))
	var rate Rate
	for range Share(200_000) {
		lo, hi := rangeOf(r, gap)
		if empty(lo, hi) || within(list, lo, hi) {
			continue
		}
		rate.Probes++
		if f.MayContainRange(lo, hi) {
			rate.Positives++
		}
	}
	narrow := filterpolicy.ExpectedRange(RangePolicy(t, "cut:6"), keys).FPR
	require.Greater(t, rate.FPR(), narrow)
	require.Less(t, rate.FPR(), 2*narrow)
}

// rangeOf draws a range of 16 random bytes, of which the first eight as a number differ by width.
func rangeOf(r *rand.Rand, width uint64) (lo, hi []byte) {
	lo = drawn(r, 16)
	hi = bytes.Clone(lo)
	binary.BigEndian.PutUint64(hi, binary.BigEndian.Uint64(lo)+width)
	return lo, hi
}

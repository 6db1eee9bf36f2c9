package ribbon_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/internal/filtertest"
	"github.com/siftkv/siftkv/filterpolicy/ribbon"
)

func TestSuite(t *testing.T) {
	filtertest.Suite(t, "ribbon:7", 100_000)
	for _, spec := range []string{"ribbon:1", "ribbon:1.5", "ribbon:3.999", "ribbon:4", "ribbon:6.72", "ribbon:12", "ribbon:31.5", "ribbon:32"} {
		filtertest.Suite(t, spec, 5000)
	}
}

func TestGolden(t *testing.T) {
	filtertest.Golden(t, "ribbon:7", "ribbon:1", "ribbon:6.72", "ribbon:16", "ribbon:32")
}

func bitsPerKey(t *testing.T, spec string, n int) float64 {
	t.Helper()
	return 8 * float64(len(filtertest.Build(t, spec, filtertest.Good(1), n))) / float64(n)
}

// What the family is for: at most 2 % above the information-theoretic bound at the
// rate that it has.
func TestBitsAreNearTheBound(t *testing.T) {
	for _, c := range []struct {
		spec string
		n    int
		most float64
	}{
		{"ribbon:7", 10_000, 1.03},
		{"ribbon:7", 100_000, 1.01},
		{"ribbon:7", 1_000_000, 1.006},
		{"ribbon:rate=0.01", 10_000, 1.05},
		{"ribbon:rate=0.01", 100_000, 1.02},
		{"ribbon:rate=0.01", 1_000_000, 1.018},
		{"ribbon:10", 1_000_000, 1.006},
	} {
		bound := -math.Log2(filterpolicy.Expected(filtertest.Policy(t, c.spec), c.n).FPR)
		got := bitsPerKey(t, c.spec, c.n)
		t.Logf("%s, %d keys: %.4f bits per key, %.4f times the bound", c.spec, c.n, got, got/bound)
		require.LessOrEqual(t, got, c.most*bound, "%s, %d keys", c.spec, c.n)
	}
}

func TestRateIsTheories(t *testing.T) {
	matchesTheory(t, "ribbon:7", 1_000_000, 4_000_000)
	matchesTheory(t, "ribbon:rate=0.01", 1_000_000, 4_000_000)
	for _, spec := range []string{"ribbon:1", "ribbon:1.25", "ribbon:3", "ribbon:4.5", "ribbon:5", "ribbon:6.001", "ribbon:9.999", "ribbon:12"} {
		matchesTheory(t, spec, 50_000, 1_000_000)
	}
}

// matchesTheory checks the size within 1 % and the rate within four standard deviations, and
// 2 % for the keys that happen to be in the narrow part.
func matchesTheory(t *testing.T, spec string, n, probes int) {
	t.Helper()
	want := filterpolicy.Expected(filtertest.Policy(t, spec), n)
	require.InEpsilon(t, want.BitsPerKey, bitsPerKey(t, spec, n), 0.01, spec)
	got := filtertest.Measure(t, spec, filtertest.Good(1), n, probes)
	t.Logf("%s, %d keys: %.4f %% false positives; theory %.4f %%", spec, n, 100*got.FPR(), 100*want.FPR)
	require.InDelta(t, want.FPR, got.FPR(), 0.02*want.FPR+4*got.Sigma(want.FPR), spec)
}

// The rate asked for is kept, and no other number of bits would do with fewer.
func TestRateIsKept(t *testing.T) {
	for spec, bits := range map[string]string{
		"ribbon:rate=0.01":                 "ribbon:6.72",
		"ribbon:rate=0.5":                  "ribbon:1",
		"ribbon:rate=0.0078125":            "ribbon:7",
		"ribbon:rate=0.001":                "ribbon:9.976",
		"ribbon:rate=0.000000000232830644": "ribbon:32",
	} {
		p := filtertest.Policy(t, spec)
		require.Equal(t, bits, p.String())
		require.Equal(t, filtertest.Policy(t, bits), p)
	}
	for _, rate := range []float64{0.5, 0.3, 0.1, 0.01, 0.001, 1e-6} {
		p, err := filterpolicy.Parse("ribbon:rate=" + strconv.FormatFloat(rate, 'f', -1, 64))
		require.NoError(t, err)
		fpr := filterpolicy.Expected(p, 10_000_000).FPR
		require.LessOrEqual(t, fpr, rate*(1+1e-9))
		require.InEpsilon(t, rate, fpr, 0.001)
	}
}

func TestUnmixedHashesDoNoHarm(t *testing.T) {
	for _, spec := range []string{"ribbon:7", "ribbon:4.5"} {
		filtertest.MixesInput(t, spec, 1000, 50_000, 0.05)
		filtertest.MixesInput(t, spec, 20_000, 50_000, 0.03)
	}
}

// A layer is smaller than its keys are many, at any number of keys: nothing depends on
// powers of two, and no size needs many attempts.
func TestAnySizeBuilds(t *testing.T) {
	for n := 2; n < 40_000; n += 1 + n/7 {
		got := bitsPerKey(t, "ribbon:8", n)
		require.LessOrEqual(t, got, 8*1.005+8*float64(350)/float64(n)+10*64*8/float64(n), "%d keys", n)
	}
}

// A key in a thousand guises takes no space.
func TestDuplicatesCostNothing(t *testing.T) {
	const distinct, times = 3000, 20
	in := filtertest.Good(1)
	b := filtertest.Policy(t, "ribbon:7").NewBuilder()
	for range times {
		for i := range uint64(distinct) {
			b.AddHash(in.At(i))
			b.AddHash(in.At(0))
		}
	}
	data, ok := b.Finish(nil)
	require.True(t, ok)
	require.Len(t, data, len(filtertest.Build(t, "ribbon:7", in, distinct)))
}

func TestParseAloneMatchesTheSentinel(t *testing.T) {
	_, err := ribbon.Parse("33")
	require.ErrorIs(t, err, filterpolicy.ErrBadSpec)
	require.EqualError(t, err, `filterpolicy: bad spec "ribbon:33": bits per key must be a number from 1 to 32 with at most three decimals, not "33"; for example "ribbon:7"`)
	_, err = ribbon.Parse("rate=0.6")
	require.ErrorIs(t, err, filterpolicy.ErrBadSpec)
	require.EqualError(t, err, `filterpolicy: bad spec "ribbon:rate=0.6": rate must be a decimal fraction from 2.33e-10 to 0.5, such as 0.01, not "0.6"; for example "ribbon:7"`)
}

func FuzzDecode(f *testing.F) {
	filtertest.FuzzDecode(f, "ribbon:7", "ribbon:1", "ribbon:6.72", "ribbon:32")
}

package gcs_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/gcs"
	"github.com/siftkv/siftkv/filterpolicy/internal/filtertest"
)

func TestSuite(t *testing.T) {
	filtertest.Suite(t, "gcs:7", 50_000)
	for _, spec := range []string{"gcs:1", "gcs:1.5", "gcs:2", "gcs:6.644", "gcs:12", "gcs:31.5", "gcs:32"} {
		filtertest.Suite(t, spec, 5000)
	}
}

func TestGolden(t *testing.T) {
	filtertest.Golden(t, "gcs:7", "gcs:1", "gcs:6.644", "gcs:16", "gcs:32")
}

func bitsPerKey(t *testing.T, spec string, n int) float64 {
	t.Helper()
	return 8 * float64(len(filtertest.Build(t, spec, filtertest.Good(1), n))) / float64(n)
}

// What the family is for: codes and index within 1.6 bits of the information-theoretic bound.
func TestBitsAreNearTheBound(t *testing.T) {
	for _, spec := range []string{"gcs:3", "gcs:5.5", "gcs:rate=0.01", "gcs:7", "gcs:7.5", "gcs:rate=0.001", "gcs:16", "gcs:24"} {
		for _, n := range []int{10_000, 100_000, 1_000_000} {
			bound := -math.Log2(filterpolicy.Expected(filtertest.Policy(t, spec), n).FPR)
			got := bitsPerKey(t, spec, n)
			t.Logf("%s, %d keys: %.4f bits per key, %.4f above the bound", spec, n, got, got-bound)
			slack := 8 * 100 / float64(n) // numbers and footer
			require.LessOrEqual(t, got, bound+1.6+slack, "%s, %d keys", spec, n)
		}
	}
}

func TestRateIsTheories(t *testing.T) {
	matchesTheory(t, "gcs:7", 200_000, 500_000)
	for _, spec := range []string{"gcs:1", "gcs:1.25", "gcs:3", "gcs:4.5", "gcs:rate=0.01", "gcs:10", "gcs:12"} {
		matchesTheory(t, spec, 50_000, 200_000)
	}
}

// matchesTheory checks the size within 2.5 % and the rate within four standard deviations.
func matchesTheory(t *testing.T, spec string, n, probes int) {
	t.Helper()
	want := filterpolicy.Expected(filtertest.Policy(t, spec), n)
	require.InEpsilon(t, want.BitsPerKey, bitsPerKey(t, spec, n), 0.025, spec)
	got := filtertest.Measure(t, spec, filtertest.Good(1), n, probes)
	t.Logf("%s, %d keys: %.4f %% false positives; theory %.4f %%", spec, n, 100*got.FPR(), 100*want.FPR)
	require.InDelta(t, want.FPR, got.FPR(), 0.01*want.FPR+4*got.Sigma(want.FPR), spec)
}

func TestRateIsKept(t *testing.T) {
	for spec, bits := range map[string]string{
		"gcs:rate=0.01":                 "gcs:6.644",
		"gcs:rate=0.5":                  "gcs:1",
		"gcs:rate=0.0078125":            "gcs:7",
		"gcs:rate=0.000000000232830644": "gcs:32",
	} {
		require.Equal(t, bits, filtertest.Policy(t, spec).String())
		require.Equal(t, filtertest.Policy(t, bits), filtertest.Policy(t, spec))
	}
	require.LessOrEqual(t, filterpolicy.Expected(filtertest.Policy(t, "gcs:rate=0.01"), 1_000_000).FPR, 0.01)
}

func TestUnmixedHashesDoNoHarm(t *testing.T) {
	filtertest.MixesInput(t, "gcs:7", 1000, 50_000, 0.05)
	filtertest.MixesInput(t, "gcs:7", 30_000, 50_000, 0.03)
}

// A filter is the list of its keys' values, and two lists of one geometry make the filter
// of all keys.
func TestAllIsTheList(t *testing.T) {
	for _, bits := range []string{"1", "7", "6.644", "32"} {
		for _, n := range []int{0, 1, 2, 3, 127, 128, 129, 5000} {
			p, err := gcs.Parse(bits)
			require.NoError(t, err)
			b, in := p.NewBuilder(), filtertest.Good(1)
			for i := range uint64(n) {
				b.AddHash(in.At(i))
			}
			data, ok := b.Finish(nil)
			require.True(t, ok)
			f, err := gcs.Decode(data)
			require.NoError(t, err)
			var want []uint64
			for i := range uint64(n) {
				want = append(want, f.Value(in.At(i)))
			}
			slices.Sort(want)
			want = slices.Compact(want)
			require.Equal(t, want, slices.Collect(f.All()))
			buckets, width := f.Buckets()
			for _, v := range want {
				require.Less(t, v, buckets*width)
			}
			for range f.All() {
				break
			}
		}
	}
}

// A key in a thousand guises takes no space.
func TestDuplicatesCostNothing(t *testing.T) {
	const distinct, times = 3000, 20
	in := filtertest.Good(1)
	b := filtertest.Policy(t, "gcs:7").NewBuilder()
	for range times {
		for i := range uint64(distinct) {
			b.AddHash(in.At(i))
			b.AddHash(in.At(0))
		}
	}
	data, ok := b.Finish(nil)
	require.True(t, ok)
	require.Len(t, data, len(filtertest.Build(t, "gcs:7", in, distinct)))
}

func TestParseAloneMatchesTheSentinel(t *testing.T) {
	_, err := gcs.Parse("0.5")
	require.ErrorIs(t, err, filterpolicy.ErrBadSpec)
	require.EqualError(t, err, `filterpolicy: bad spec "gcs:0.5": bits per key must be a number from 1 to 32 with at most three decimals, not "0.5"; for example "gcs:7"`)
	_, err = gcs.Parse("rate=1")
	require.ErrorIs(t, err, filterpolicy.ErrBadSpec)
	require.EqualError(t, err, `filterpolicy: bad spec "gcs:rate=1": rate must be a decimal fraction from 2.33e-10 to 0.5, such as 0.01, not "1"; for example "gcs:7"`)
}

func FuzzDecode(f *testing.F) { filtertest.FuzzDecode(f, "gcs:7", "gcs:1", "gcs:6.644", "gcs:32") }

func BenchmarkVersusBlocked(b *testing.B) {
	filtertest.Versus(b, "blocked:10", "gcs:7", "gcs:rate=0.01")
}

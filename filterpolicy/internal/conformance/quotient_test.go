package conformance

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/quotient"
)

// A table fills to its load whatever its size: bits per key do not jump at powers of
// two.
func TestQuotientBitsAreAsStated(t *testing.T) {
	for _, n := range Affordable(10_000, 16_384, 16_385, 100_000, 131_073, 1_000_000) {
		for remainder, spec := range map[float64]string{2: "quotient:2", 7: "quotient:7", 16: "quotient:16"} {
			slack := 6 * 64 * (remainder + 2.25) / float64(n)
			got := BitsPerKey(t, spec, Good(1), n)
			t.Logf("%s, %d keys: %.3f bits per key", spec, n, got)
			require.LessOrEqual(t, got, (remainder+2.25)/0.95+slack, "%s, %d keys", spec, n)
		}
	}
}

func TestQuotientAllIsTheList(t *testing.T) {
	for _, spec := range []string{"quotient:2", "quotient:7", "quotient:32"} {
		for _, n := range []int{0, 1, 2, 3, 60, 61, 1000, 20_000} {
			f := ListsItsKeys(t, spec, quotient.Decode, n)
			require.Len(t, slices.Collect(f.All()), int(f.Len()))
		}
	}
}

func quotientMergeable(tb testing.TB, bits string) Mergeable[*quotient.Filter] {
	tb.Helper()
	p, err := quotient.Parse(bits)
	require.NoError(tb, err)
	return Mergeable[*quotient.Filter]{
		NewBuilderFor: func(keys int) filterpolicy.Builder { return p.NewBuilderFor(keys) },
		Decode:        quotient.Decode, Merge: quotient.Merge, ErrUnlike: quotient.ErrUnlike,
	}
}

func TestQuotientMerge(t *testing.T) {
	for _, bits := range []string{"2", "7", "12"} {
		t.Run(bits, quotientMergeable(t, bits).Check)
	}
}

// Without room, quotients double and values stay what they are: the rate is the sum of
// the parts'.
func TestQuotientMergeDoublesWhenFull(t *testing.T) {
	const n, parts = 5000, 4
	all, _ := quotientMergeable(t, "6").Build(t, n, 0, n)
	quotients, _ := all.Geometry()
	for part := uint64(1); part < parts; part++ {
		next, _ := quotientMergeable(t, "6").Build(t, n, part*n, (part+1)*n)
		data, err := quotient.Merge(nil, all, next)
		require.NoError(t, err)
		all, err = quotient.Decode(data)
		require.NoError(t, err)
	}
	q, r := all.Geometry()
	require.Equal(t, 4*quotients, q)
	require.Equal(t, 4, r)
	positives := 0
	for i := range uint64(parts * n) {
		require.True(t, all.MayContainHash(Good(1).At(i)))
	}
	const probes = 200_000
	for i := range uint64(probes) {
		if all.MayContainHash(Good(2).At(i)) {
			positives++
		}
	}
	rate := parts * 0.95 / 64.0
	require.InDelta(t, -math.Expm1(-rate), float64(positives)/probes, 0.003)
}

func TestQuotientMergeIsFullAtLast(t *testing.T) {
	c, _ := quotientMergeable(t, "2").Build(t, 100, 0, 100)
	for i := uint64(1); ; i++ {
		next, _ := quotientMergeable(t, "2").Build(t, 100, i*100, i*100+100)
		merged, err := quotient.Merge(nil, c, next)
		if err != nil {
			require.ErrorIs(t, err, quotient.ErrFull)
			require.Greater(t, i, uint64(1))
			return
		}
		c, err = quotient.Decode(merged)
		require.NoError(t, err)
		require.Less(t, i, uint64(100), "a range of 424 values is never full")
	}
}

func TestQuotientRates(t *testing.T) {
	Means(t, map[string]string{
		"quotient:07": "quotient:7", "quotient:rate=0.01": "quotient:7", "quotient:rate=0.5": "quotient:2",
		"quotient:rate=0.0037":  "quotient:9",
		"quotient:rate=0.00371": "quotient:8", "quotient:rate=0.00000000023": "quotient:32",
	})
	LeastBitsKeepRates(t, "quotient:", "", 0.5, 0.2, 0.1, 0.01, 0.001, 1e-6, 1e-9)
}

func TestQuotientParseSaysWhatIsWrong(t *testing.T) {
	Refuses(t, quotient.Parse, map[string]string{
		"1":        `remainder bits must be a whole number from 2 to 32, not "1"; for example "quotient:7"`,
		"7.5":      `remainder bits must be a whole number from 2 to 32`,
		"rate=0.6": `rate must be a decimal fraction from 2.22e-10 to 0.5, such as 0.01, not "0.6"`,
		"rate=":    `rate must be a decimal fraction`,
	})
}

func TestQuotientHostileMerges(t *testing.T) { quotientMergeable(t, "7").Hostile(t, "quotient:7") }

func FuzzQuotientMerge(f *testing.F) { quotientMergeable(f, "7").Fuzz(f, "quotient:7") }

func BenchmarkQuotientVersusBlocked(b *testing.B) {
	Versus(b, "blocked:10", "quotient:7")
}

package quotient_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/internal/filtertest"
	"github.com/siftkv/siftkv/filterpolicy/quotient"
)

func TestSuite(t *testing.T) {
	filtertest.Suite(t, "quotient:7", 50_000)
	for _, spec := range []string{"quotient:2", "quotient:3", "quotient:8", "quotient:13", "quotient:31", "quotient:32"} {
		filtertest.Suite(t, spec, 5000)
	}
}

func TestGolden(t *testing.T) {
	filtertest.Golden(t, "quotient:7", "quotient:2", "quotient:8", "quotient:13", "quotient:32")
}

func bitsPerKey(t *testing.T, spec string, n int) float64 {
	t.Helper()
	return 8 * float64(len(filtertest.Build(t, spec, filtertest.Good(1), n))) / float64(n)
}

// A table fills to its load whatever its size: bits per key do not jump at powers of
// two.
func TestBitsAreAsStated(t *testing.T) {
	for _, n := range []int{10_000, 16_384, 16_385, 100_000, 131_073, 1_000_000} {
		for remainder, spec := range map[float64]string{2: "quotient:2", 7: "quotient:7", 16: "quotient:16"} {
			slack := 6 * 64 * (remainder + 2.25) / float64(n)
			got := bitsPerKey(t, spec, n)
			t.Logf("%s, %d keys: %.3f bits per key", spec, n, got)
			require.LessOrEqual(t, got, (remainder+2.25)/0.95+slack, "%s, %d keys", spec, n)
		}
	}
}

func TestRateIsTheories(t *testing.T) {
	matchesTheory(t, "quotient:7", 1_000_000, 2_000_000)
	for _, spec := range []string{"quotient:2", "quotient:3", "quotient:5", "quotient:8", "quotient:10", "quotient:13"} {
		matchesTheory(t, spec, 50_000, 500_000)
	}
}

// matchesTheory checks the size but for a few blocks, and the rate within four standard deviations.
func matchesTheory(t *testing.T, spec string, n, probes int) {
	t.Helper()
	want := filterpolicy.Expected(filtertest.Policy(t, spec), n)
	require.InEpsilon(t, want.BitsPerKey, bitsPerKey(t, spec, n), 6*64/float64(n), spec)
	got := filtertest.Measure(t, spec, filtertest.Good(1), n, probes)
	t.Logf("%s, %d keys: %.4f %% false positives; theory %.4f %%", spec, n, 100*got.FPR(), 100*want.FPR)
	require.InDelta(t, want.FPR, got.FPR(), 0.01*want.FPR+4*got.Sigma(want.FPR), spec)
}

func TestUnmixedHashesDoNoHarm(t *testing.T) {
	filtertest.MixesInput(t, "quotient:7", 1000, 50_000, 0.05)
	filtertest.MixesInput(t, "quotient:7", 20_000, 50_000, 0.03)
}

// build makes a filter of the keys from..to-1 with room for some number.
func build(t *testing.T, bits string, room int, from, to uint64) (*quotient.Filter, []byte) {
	t.Helper()
	p, err := quotient.Parse(bits)
	require.NoError(t, err)
	b := p.NewBuilderFor(room)
	for i := from; i < to; i++ {
		b.AddHash(filtertest.Good(1).At(i))
	}
	data, ok := b.Finish(nil)
	require.True(t, ok)
	f, err := quotient.Decode(data)
	require.NoError(t, err)
	return f, data
}

func TestAllIsTheList(t *testing.T) {
	for _, bits := range []string{"2", "7", "32"} {
		for _, n := range []uint64{0, 1, 2, 3, 60, 61, 1000, 20_000} {
			f, _ := build(t, bits, 0, 0, n)
			var want []uint64
			for i := range n {
				want = append(want, f.Value(filtertest.Good(1).At(i)))
			}
			slices.Sort(want)
			want = slices.Compact(want)
			require.Equal(t, want, slices.Collect(f.All()))
			require.Equal(t, uint64(len(want)), f.Len())
			for range f.All() {
				break
			}
		}
	}
}

// Parts of one whole, merged in any order, are the filter of the whole.
func TestMergeIsTheFilterOfAllKeys(t *testing.T) {
	const n = 30_000
	for _, bits := range []string{"2", "7", "12"} {
		_, whole := build(t, bits, n, 0, n)
		a, _ := build(t, bits, n, 0, 10_000)
		b, _ := build(t, bits, n, 10_000, 20_000)
		c, _ := build(t, bits, n, 20_000, n)
		for _, order := range [][]*quotient.Filter{{a, b, c}, {c, a, b}, {b, c, a}} {
			data, err := quotient.Merge(nil, order[0], order[1])
			require.NoError(t, err)
			two, err := quotient.Decode(data)
			require.NoError(t, err)
			data, err = quotient.Merge([]byte("x"), two, order[2])
			require.NoError(t, err)
			require.Equal(t, whole, data[1:])
		}
	}
}

func TestMergeWithNothing(t *testing.T) {
	none, empty := build(t, "7", 1000, 0, 0)
	some, data := build(t, "7", 1000, 0, 500)
	for _, pair := range [][2]*quotient.Filter{{none, some}, {some, none}} {
		got, err := quotient.Merge(nil, pair[0], pair[1])
		require.NoError(t, err)
		require.Equal(t, data, got)
	}
	got, err := quotient.Merge(nil, none, none)
	require.NoError(t, err)
	require.Equal(t, empty, got)
}

// Without room, quotients double and values stay what they are: the rate is the sum of
// the parts'.
func TestMergeDoublesWhenFull(t *testing.T) {
	const n, parts = 5000, 4
	all, _ := build(t, "6", n, 0, n)
	quotients, _ := all.Geometry()
	for part := uint64(1); part < parts; part++ {
		next, _ := build(t, "6", n, part*n, (part+1)*n)
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
		require.True(t, all.MayContainHash(filtertest.Good(1).At(i)))
	}
	const probes = 200_000
	for i := range uint64(probes) {
		if all.MayContainHash(filtertest.Good(2).At(i)) {
			positives++
		}
	}
	rate := parts * 0.95 / 64.0
	require.InDelta(t, -math.Expm1(-rate), float64(positives)/probes, 0.003)
}

func TestMergeSaysWhy(t *testing.T) {
	a, _ := build(t, "7", 1000, 0, 500)
	b, _ := build(t, "7", 1001, 500, 900)
	data, err := quotient.Merge([]byte("x"), a, b)
	require.ErrorIs(t, err, quotient.ErrUnlike)
	require.Equal(t, "x", string(data))

	c, _ := build(t, "2", 100, 0, 100)
	for i := uint64(1); ; i++ {
		next, _ := build(t, "2", 100, i*100, i*100+100)
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

// A key in a thousand guises takes one slot.
func TestDuplicatesCostNothing(t *testing.T) {
	const distinct, times = 3000, 20
	in := filtertest.Good(1)
	b := filtertest.Policy(t, "quotient:7").NewBuilder()
	for range times {
		for i := range uint64(distinct) {
			b.AddHash(in.At(i))
			b.AddHash(in.At(0))
		}
	}
	data, ok := b.Finish(nil)
	require.True(t, ok)
	require.Len(t, data, len(filtertest.Build(t, "quotient:7", in, distinct)))
}

func TestParseAloneMatchesTheSentinel(t *testing.T) {
	_, err := quotient.Parse("1")
	require.ErrorIs(t, err, filterpolicy.ErrBadSpec)
	require.EqualError(t, err, `filterpolicy: bad spec "quotient:1": remainder bits must be a whole number from 2 to 32, not "1"; for example "quotient:7"`)
}

func FuzzDecode(f *testing.F) {
	filtertest.FuzzDecode(f, "quotient:7", "quotient:2", "quotient:32")
}

// Any two filters that Decode accepts may be listed and merged, whatever is in them.
func FuzzMerge(f *testing.F) {
	for _, n := range []int{0, 1, 50} {
		f.Add(filtertest.Build(f, "quotient:7", filtertest.Good(1), n), filtertest.Build(f, "quotient:7", filtertest.Good(2), n))
	}
	f.Fuzz(func(t *testing.T, x, y []byte) {
		a, errA := quotient.Decode(filtertest.Reseal(x))
		b, errB := quotient.Decode(filtertest.Reseal(y))
		if errA != nil || errB != nil || a.Len()+b.Len() > 1000 {
			return
		}
		data, err := quotient.Merge(nil, a, b)
		if err != nil {
			require.Empty(t, data)
			return
		}
		merged, err := quotient.Decode(data)
		require.NoError(t, err)
		require.True(t, slices.IsSorted(slices.Collect(merged.All())))
	})
}

func BenchmarkVersusBlocked(b *testing.B) {
	filtertest.Versus(b, "blocked:10", "quotient:7")
}

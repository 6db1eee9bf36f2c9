package filterpolicy

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWithBitsTakesWhatFits(t *testing.T) {
	for _, c := range []struct {
		spec string
		bits float64
		want string // "" for none
	}{
		{"bloom:10", 7.25, "bloom:7.25"},
		{"blocked:10", 16, "blocked:16"},
		{"blocked:10", 0.5, ""},
		{"cuckoo:12", 12.7, "cuckoo:12"},
		{"cuckoo:12", 12.5, "cuckoo:11"},
		{"cuckoo:12,2", 10, "cuckoo:8,2"},
		{"cuckoo:12", 3, ""},
		{"cuckoo:12,4,semisort", 11.6, "cuckoo:12,4,semisort"},
		{"fuse:8,4", 8.7, "fuse:8,4"},
		{"ribbon:7", 7.05, "ribbon:7"},
		{"none", 10, ""},
	} {
		p, err := Parse(c.spec)
		require.NoError(t, err)
		got, ok := WithBits(p, c.bits)
		require.Equal(t, c.want != "", ok, "%s at %g", c.spec, c.bits)
		if ok {
			want, err := Parse(c.want)
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.LessOrEqual(t, Expected(got, sizedFor).BitsPerKey, c.bits+0.01)
		}
	}
}

func TestSpreadBeatsUniformBits(t *testing.T) {
	levels := []uint64{1_000, 10_000, 100_000, 1_000_000, 10_000_000}
	total := uint64(0)
	for _, n := range levels {
		total += n
	}
	for _, spec := range []string{"bloom:10", "blocked:10", "cuckoo:12"} {
		p, err := Parse(spec)
		require.NoError(t, err)
		for _, perKey := range []float64{2, 5, 10} {
			budget := int64(perKey * float64(total) / 8)
			bits := Spread(p, budget, levels)
			used, spread, uniform := 0.0, 0.0, 0.0
			r, scale, ok := slope(p)
			require.True(t, ok)
			rate := func(b float64) float64 { return min(1, math.Exp(scale-r*b)) }
			for i, n := range levels {
				used += bits[i] * float64(n)
				spread += rate(bits[i])
				uniform += rate(perKey)
				if i > 0 {
					require.LessOrEqual(t, bits[i], bits[i-1], "larger runs get fewer bits")
				}
			}
			require.InEpsilon(t, perKey*float64(total), used, 0.01, "the budget is used")
			require.Less(t, spread, 0.8*uniform, "%s at %g bits: the sum of rates", spec, perKey)
		}
	}
}

func TestSpreadOfNothing(t *testing.T) {
	p, err := Parse("blocked:10")
	require.NoError(t, err)
	require.Equal(t, []float64{0, 0}, Spread(p, 0, []uint64{5, 6}))
	require.Equal(t, []float64{0}, Spread(p, 100, []uint64{0}))
	require.Empty(t, Spread(p, 100, nil))
	none, err := Parse("none")
	require.NoError(t, err)
	require.Equal(t, []float64{0}, Spread(none, 100, []uint64{10}))
	huge := Spread(p, 1<<50, []uint64{10})
	require.False(t, math.IsInf(huge[0], 0))
}

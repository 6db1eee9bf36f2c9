package results

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// result is a cell with a counter, a time and a percentile.
func result(filter string, blocks float64, ns ...float64) *tidy.Measured {
	s := cell.Default()
	s.Filter = filter
	r := &cell.Result{
		Name: s.Name(), Settings: s,
		Metrics: []cell.Metric{
			{Kind: "absent", Unit: "ns/op", Value: ns[len(ns)/2], Better: "lower", Samples: ns},
			{Kind: "absent", Unit: "p99-ns", Value: ns[0], Better: "lower", Samples: ns[:1]},
			{Kind: "absent", Unit: "blocks/op", Value: blocks, Exact: true, Better: "lower"},
			{Kind: "absent", Unit: "negatives/op", Value: 1 - blocks, Exact: true},
		},
	}
	return r.Measured()
}

func set(r ...*tidy.Measured) []*tidy.Measured { return r }

func TestCountersExactlyTimesByRank(t *testing.T) {
	a := set(result("none", 1, 100, 101, 102, 103, 104), result("bloom:10", 0.01, 50, 51, 52, 53, 54),
		result("xor:8", 0, 1, 2, 3))
	b := set(result("none", 1, 100, 101, 102, 103, 104.5), result("bloom:10", 0.02, 60, 61, 62, 63, 64),
		result("fuse:8", 0, 1, 2, 3))
	d, err := Compare(a, b, nil)
	require.NoError(t, err)
	require.Equal(t, []string{a[2].Name}, d.OnlyA)
	require.Equal(t, []string{b[2].Name}, d.OnlyB)
	require.Equal(t, 2, d.Equal)
	require.Equal(t, 2, d.Changed)
	none, bloom := d.Cells[0].Metrics, d.Cells[1].Metrics
	require.Equal(t, Unclear, none[0].Verdict, "%+v", none[0].Rank)
	require.Equal(t, Unclear, none[1].Verdict)
	require.Nil(t, none[1].Rank, "one percentile is not a sample")
	require.Equal(t, Same, none[2].Verdict)
	require.Equal(t, Worse, bloom[0].Verdict)
	require.InDelta(t, 2/252.0, bloom[0].Rank.P, 1e-9, "no order of five and five is rarer")
	require.InDelta(t, 62/52.0, bloom[0].Rank.Ratio, 0.01)
	require.Less(t, bloom[0].Rank.Low, bloom[0].Rank.Ratio)
	require.Greater(t, bloom[0].Rank.Low, 1.0)
	require.Equal(t, Worse, bloom[2].Verdict)
	require.InDelta(t, 1, bloom[2].Delta, 1e-12)
	require.Equal(t, Changed, bloom[3].Verdict)
	require.Empty(t, d.Warnings)

	back, err := Compare(b[:2], a[:2], nil)
	require.NoError(t, err)
	require.Equal(t, Better, back.Cells[1].Metrics[0].Verdict)
}

func TestOneCellIsComparedWithAnyOther(t *testing.T) {
	d, err := Compare(set(result("none", 0, 1, 2, 3)), set(result("bloom:10", 0.5, 2, 3, 4)), nil)
	require.NoError(t, err)
	require.True(t, math.IsInf(d.Cells[0].Metrics[2].Delta, 1))
	require.Contains(t, d.Warnings[0], "too few repetitions")
	rows := d.Rows()
	of := tidy.Of("cell", d.Cells[0].Name, "of", "absent blocks/op", "verdict", Worse)
	require.Equal(t, []float64{0.5}, rows.Values(of, "second"))
	require.Empty(t, rows.Values(of, "change"), "it is infinite")
	require.Equal(t, []float64{1}, rows.Values(of, "exact"))
	of = tidy.Of("cell", d.Cells[0].Name, "of", "absent ns/op", "verdict", Unclear)
	require.Equal(t, []float64{3}, rows.Values(of, "second-n"))
	require.Empty(t, rows.Values(of, "exact"))
	_, err = json.Marshal(rows)
	require.NoError(t, err)
	_, err = Compare(set(result("none", 0, 1)), set(result("xor:8", 0, 1), result("fuse:8", 0, 1)), nil)
	require.ErrorIs(t, err, bench.ErrUsage)
}

// TestAViolationShowsTheChange has a change of large numbers that four digits do not show.
func TestAViolationShowsTheChange(t *testing.T) {
	limits, err := ParseLimits([]string{"blocks/op>0%"})
	require.NoError(t, err)
	for _, tc := range []struct {
		a, b float64
		want string
	}{{1_250_000, 1_250_300, "1250000 → 1250300 (+0.02 %)"}, {0, 0.5, "0 → 0.5 (from 0)"}} {
		d, err := Compare(set(result("none", tc.a, 1)), set(result("none", tc.b, 1)), limits)
		require.NoError(t, err)
		require.Len(t, d.Violations, 1)
		require.Equal(t, "blocks/op>0%: "+d.Cells[0].Name+": absent blocks/op "+tc.want, d.Violations[0].String())
		require.ErrorContains(t, d.Err(), tc.want)
	}
}

func TestLimits(t *testing.T) {
	a, b := set(result("none", 1, 100, 101, 102, 103, 104)), set(result("none", 1.1, 110, 111, 112, 113, 114))
	for _, tc := range []struct {
		limit string
		fails int
	}{
		{"ns/op>5%", 1}, {"ns/op>15%", 0}, {"absent ns/op > 9 %", 1}, {"blocks/op>0%", 1}, {"blocks/op>10.1%", 0},
		{"negatives/op<-1%", 1}, {"ns/op>5%,blocks/op>1%", 2}, {"p99-ns>5%", 1},
	} {
		limits, err := ParseLimits([]string{tc.limit})
		require.NoError(t, err)
		d, err := Compare(a, b, limits)
		require.NoError(t, err)
		require.Len(t, d.Violations, tc.fails, tc.limit)
		require.Equal(t, tc.fails > 0, d.Err() != nil)
		if tc.fails > 0 {
			require.Equal(t, bench.StatusThreshold, bench.Status(d.Err()))
		}
	}
	noisy := set(result("none", 1, 90, 150, 95, 200, 110))
	limits, err := ParseLimits([]string{"ns/op>1%"})
	require.NoError(t, err)
	d, err := Compare(a, noisy, limits)
	require.NoError(t, err)
	require.Empty(t, d.Violations, "what chance does is no violation")

	for _, text := range []string{"", "ns/op", "ns/op>5", "ns/op>x%", ">5%"} {
		_, err := ParseLimits([]string{text})
		require.ErrorIs(t, err, bench.ErrUsage, text)
	}
	for _, text := range []string{"n/op>5%", "sometimes ns/op>5%"} {
		limits, err = ParseLimits([]string{text})
		require.NoError(t, err)
		_, err = Compare(a, b, limits)
		require.ErrorIs(t, err, bench.ErrUsage, "a misspelt limit does not pass")
		require.ErrorContains(t, err, "there are absent ns/op")
	}
}

// A limit on what the second set has no more does not pass: neither a cell nor a metric that is gone.
func TestALimitFailsOnWhatIsMissing(t *testing.T) {
	t.Parallel()
	a := set(result("none", 1, 1, 2, 3), result("bloom:10", 1, 1, 2, 3))
	stripped := result("none", 1, 1, 2, 3)
	stripped.Metrics = stripped.Metrics[:2] // no counters
	limits, err := ParseLimits([]string{"blocks/op>0%"})
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		b    []*tidy.Measured
		want []string // names of cells
	}{
		"all there":   {a, nil},
		"a cell":      {a[:1], []string{a[1].Name}},
		"a metric":    {set(stripped, a[1]), []string{a[0].Name}},
		"both":        {set(stripped), []string{a[0].Name, a[1].Name}},
		"one is more": {append(set(result("xor:8", 1, 1, 2, 3)), a...), nil},
	} {
		d, err := Compare(a, tc.b, limits)
		require.NoError(t, err, name)
		var got []string
		for _, v := range d.Violations {
			require.Equal(t, "blocks/op>0%: "+v.Cell+": absent blocks/op is missing from the second set", v.String(),
				name)
			got = append(got, v.Cell)
		}
		require.Equal(t, tc.want, got, name)
		if tc.want == nil {
			require.NoError(t, d.Err(), name)
			continue
		}
		require.Equal(t, bench.StatusThreshold, bench.Status(d.Err()), name)
		require.ErrorContains(t, d.Err(), tc.want[0]+": absent blocks/op is missing from the second set", name)
	}
	d, err := Compare(a, a[:1], nil)
	require.NoError(t, err)
	require.NoError(t, d.Err(), "without a limit nothing fails")
}

// TestTheIntervalHoldsWhatItShould draws many pairs of samples whose ratio is known.
func TestTheIntervalHoldsWhatItShould(t *testing.T) {
	const pairs, truth = 500, 1.2
	for _, n := range []int{3, 5, 8, 60} {
		random := rand.New(rand.NewPCG(1, uint64(n)))
		held, rejected := 0, 0
		for range pairs {
			a, b := make([]float64, n), make([]float64, n)
			for i := range n {
				a[i], b[i] = math.Exp(random.NormFloat64()), truth*math.Exp(random.NormFloat64())
			}
			r := rank(a, b)
			if r.Low <= truth && truth <= r.High {
				held++
			}
			for i := range b {
				b[i] /= truth
			}
			if rank(a, b).P < Alpha {
				rejected++
			}
		}
		// A binomial deviates by 5 sigma once in two million.
		level := rank(make1(n), make1(n)).Level
		sigma := math.Sqrt(level * (1 - level) / pairs)
		require.InDelta(t, level, float64(held)/pairs, 5*sigma+0.01, "n = %d", n)
		require.LessOrEqual(t, float64(rejected)/pairs, Alpha+5*math.Sqrt(Alpha*(1-Alpha)/pairs))
		require.Equal(t, n > 3, level >= 0.95-1e-9, "n = %d: %g", n, level)
	}
}

func make1(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(i + 1)
	}
	return x
}

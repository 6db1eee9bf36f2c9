package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell/celltest"
)

func samples() ([]*cell.Result, []string) {
	set := celltest.Samples()
	labels := make([]string, len(set))
	for i, r := range set {
		labels[i] = r.Settings.Engine + " " + r.Settings.Filter
	}
	return set, labels
}

func find(t *testing.T, charts []Chart, id string) *Chart {
	t.Helper()
	for i := range charts {
		if charts[i].ID == id {
			return &charts[i]
		}
	}
	require.Fail(t, "no chart "+id)
	return nil
}

func TestChartsShowTheCounters(t *testing.T) {
	set, labels := samples()
	charts := All(set, labels)
	blocks := find(t, charts, "blocks-absent")
	require.Equal(t, labels, blocks.Categories)
	for i, r := range set {
		sum := 0.0
		for _, s := range blocks.Series {
			sum += s.Values[i]
		}
		want := 0.0
		if m := r.Metric("absent", "blocks/op"); m != nil {
			want = m.Value
		}
		require.InDelta(t, want, sum, 1e-9, "the levels of %s add up to its metric", labels[i])
	}

	require.True(t, blocks.Y.Log && !blocks.Stacked, "beside a cell without filters the others' bars would not be seen")
	existing := find(t, charts, "blocks-existing")
	require.True(t, !existing.Y.Log && existing.Stacked)

	fpr := find(t, charts, "fpr")
	for _, s := range fpr.Series {
		for i, p := range s.Points {
			require.Positive(t, p.Y, "the axis is logarithmic")
			require.True(t, s.Dashed || p.Low <= p.Y && p.Y <= p.High)
			require.True(t, !s.Line || i == 0 || s.Points[i-1].X < p.X)
		}
	}
	require.Equal(t, "siftkv bloom", fpr.Series[2].Like)
	require.Equal(t, 0, fpr.hue(2))

	latency := find(t, charts, "latency-absent")
	require.Len(t, latency.Series, len(set))
	last := latency.Series[1].Points[len(latency.Series[1].Points)-1]
	require.InDelta(t, set[1].Absent.Latency.Max, last.Y, 0)
	require.Len(t, find(t, charts, "funnel-existing").Series, 3, "of engines that count the steps")
}

func TestTheFrontIsWhatNothingBeats(t *testing.T) {
	got := front([]Point{{X: 2, Y: 3}, {X: 1, Y: 5}, {X: 3, Y: 3}, {X: 4, Y: 1}, {X: 1, Y: 6}})
	require.Equal(t, []Point{{X: 1, Y: 5}, {X: 2, Y: 3}, {X: 4, Y: 1}}, got)
}

func TestSVGIsWellFormedAndTheSameEveryTime(t *testing.T) {
	set, labels := samples()
	for _, c := range All(set, labels) {
		var out, again bytes.Buffer
		require.NoError(t, SVG(&out, &c))
		require.NoError(t, SVG(&again, &c))
		require.True(t, bytes.Equal(out.Bytes(), again.Bytes()), c.ID)
		require.Contains(t, out.String(), c.Title)
		d := xml.NewDecoder(&out)
		elements := 0
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, c.ID)
			if _, ok := token.(xml.StartElement); ok {
				elements++
			}
		}
		require.Greater(t, elements, 20, c.ID)
	}
}

// A chart may have one point, or none, and an interval may reach down to zero.
func TestALogarithmicAxisIsDrawnOverAnyPoints(t *testing.T) {
	set, labels := samples()
	for i := range set {
		for _, c := range All(set[i:i+1], labels[i:i+1]) {
			require.NoError(t, SVG(io.Discard, &c), "%s of %s alone", c.ID, labels[i])
		}
	}
	for name, points := range map[string][]Point{
		"none":           nil,
		"nothing to see": {{X: 1, Y: 0}, {X: 0, Y: 1}, {X: -1, Y: -1}},
		"one":            {{X: 1e-9, Y: 1e-9}},
		"one, large":     {{X: 1e300, Y: 1e300}},
		"same":           {{X: 3, Y: 3}, {X: 3, Y: 3}},
		"from zero":      {{X: 1, Y: 1, Low: 0, High: 2}, {X: 2, Y: 4, Low: -1, High: 5}},
		"wide":           {{X: 1e-300, Y: 1e300}, {X: 1e300, Y: 1e-300}},
	} {
		for _, joined := range []bool{false, true} {
			c := Chart{ID: "id", Title: "Title", Form: Lines, X: Axis{Name: "x", Log: true},
				Y: Axis{Name: "y", Log: true}}
			c.Series = []Series{{Name: "series", Points: points, Line: joined}}
			var out bytes.Buffer
			require.NoError(t, SVG(&out, &c), name)
			require.Contains(t, out.String(), "</svg>", name)
			require.NotContains(t, out.String(), "NaN", name)
		}
	}
}

func TestTicksOfAnImpossibleRangeAreNone(t *testing.T) {
	inf := math.Inf(1)
	for _, r := range [][2]float64{{-0.5, 1.5}, {0, 1}, {1, inf}, {-inf, inf}, {math.NaN(), 1}, {1, math.NaN()},
		{2, 1}} {
		require.Empty(t, logTicks{}.Ticks(r[0], r[1]), r)
	}
}

func TestNothingIsDrawnOfNothing(t *testing.T) {
	require.Empty(t, All(nil, nil)[:0])
	set, labels := samples()
	for _, c := range All(set[:1], labels[:1]) { // null counts nothing
		require.Contains(t, []string{"latency-absent", "latency-existing", "times"}, c.ID)
	}
}

func TestTimelinesAreDrawnOncePerStore(t *testing.T) {
	set, labels := samples()
	again := *set[1]
	again.Settings.Cache *= 2 // the same files
	c := find(t, All(append(set, &again), append(labels, "again")), "writes")
	require.Len(t, c.Series, len(set)-1, "null has no store")
	line := set[1].Build.Timeline
	s := c.Series[0]
	writes := 0.0
	for i, p := range s.Points {
		require.InDelta(t, (float64(i)+0.5)*line.Interval, p.X, 1e-9)
		writes += p.Y * line.Interval
	}
	require.InDelta(t, 100_000, writes, 1e-6)
	require.Len(t, s.Marks, len(line.Events))
	for i, m := range s.Marks {
		require.Contains(t, Lanes, m.Lane)
		require.InDelta(t, line.Events[i].From, m.From, 0)
		require.NotEmpty(t, m.Label)
	}
	require.Equal(t, "compaction L0 to L6, 7.6 MiB", s.Marks[3].Label)
}

func TestRatios(t *testing.T) {
	set, labels := samples()
	c := find(t, All(set, labels), "ratios")
	require.Equal(t, 1, c.Baseline, "null is no store")
	for i, s := range c.Series {
		one, known := c.RatioOf(i, 1)
		require.True(t, !known || one == 1, s.Name)
		_, known = c.RatioOf(i, 0)
		require.Equal(t, s.Values[0] >= 0, known, s.Name)
	}
	blocks, known := c.RatioOf(0, 2)
	require.True(t, known)
	want := set[2].Metric("absent", "blocks/op").Value / set[1].Metric("absent", "blocks/op").Value
	require.InDelta(t, want, blocks, 1e-9)
	c.Series[0].Values[1] = 0
	blocks, known = c.RatioOf(0, 2)
	require.True(t, known)
	require.Equal(t, "from 0", ratioText(blocks, known))
	require.Equal(t, "-", ratioText(0, false))
	require.Equal(t, "0.12", ratioText(0.124, true))
	require.Zero(t, ratioColour(1).A)
	require.Equal(t, ratioColour(8), ratioColour(100))
}

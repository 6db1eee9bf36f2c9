package chart

import (
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

func TestNothingIsDrawnOfNothing(t *testing.T) {
	require.Empty(t, All(nil, nil)[:0])
	set, labels := samples()
	for _, c := range All(set[:1], labels[:1]) { // null counts nothing
		require.Contains(t, []string{"latency-absent", "latency-existing", "times"}, c.ID)
	}
}

func TestRatios(t *testing.T) {
	set, labels := samples()
	c := find(t, All(set, labels), "ratios")
	require.Equal(t, 1, c.Baseline, "null is no store")
	require.Equal(t, "absent blocks", c.Series[0].Name)
	for i, r := range set[1:] {
		require.InDelta(t, r.Metric("absent", "blocks/op").Value, c.Series[0].Values[i+1], 1e-9)
	}
}

package chart

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/advice"
	"github.com/siftkv/siftkv/internal/advise"
)

// The settings of now and of the recommendation lie over all others, and the headings alone have the charts' titles.
func TestAdviceIsDrawnOverOtherSettings(t *testing.T) {
	predicted := func(memory int64, nanos float64) (p advise.Prediction) {
		p.Memory, p.Cache, p.All.Operations = memory, memory, 1
		p.All.Nanos, p.All.Reads = nanos, nanos/1e5
		return p
	}
	now, best := predicted(4<<20, 2e4), predicted(5<<20, 1e4)
	all := []advise.Prediction{predicted(1<<20, 9e4), now, best}
	r := &advice.Result{Advice: &advise.Advice{Now: now, All: all, Front: all, Curve: all}}
	r.Advice.Recommendation.Setting = best
	var page strings.Builder
	require.NoError(t, WriteAdvice(&page, r))
	svg, _, _ := strings.Cut(page.String(), "</svg>")
	parts := strings.SplitAfterN(svg, "fill:#808080", len(all)+1) // behind the last grey point
	require.Len(t, parts, len(all)+1)
	for _, colour := range []string{"fill:#D55E00", "fill:#009E73"} {
		require.NotContains(t, strings.Join(parts[:len(all)], ""), colour)
		require.Contains(t, parts[len(all)], colour)
	}
	for _, c := range Advice(r) {
		require.Equal(t, 1, strings.Count(page.String(), c.Title), "the title of %s", c.ID)
	}
}

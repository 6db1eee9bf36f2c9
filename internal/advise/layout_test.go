package advise

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Trees have the bytes of the store, at most the runs that their design allows, and filters that are asked
// more where there are more runs.
func TestStylesHaveTheRunsOfTheirDesign(t *testing.T) {
	s := Store{Runs: 1, Filter: "blocked:10", Compaction: tiered,
		Tree: Tree{RunsPerLevel: 4, Level0: 4, Space: 1.3, BaseLevel: 1 << 20, Memtable: 1 << 20}}
	s.Files = []File{{Keys: 10_000_000, Blocks: 250_000, Bytes: 1 << 30, Filter: "blocked:10"}}
	for _, style := range []string{leveled, tiered, lazyLeveled} {
		tiers := s.tiers(style, 1<<30)
		sum, most := 0.0, 0.0
		for i, tier := range tiers {
			sum += tier.bytes * tier.middle
			most += tier.most
			require.LessOrEqual(t, tier.middle, tier.most)
			require.Positive(t, tier.bytes)
			require.True(t, i == 0 || tiers[i-1].bytes <= tier.bytes*3, "%s: they grow", style)
		}
		require.InEpsilon(t, 1<<30, sum, 0.05, style)
		levels := float64(len(tiers) - 1)
		switch style {
		case leveled:
			require.InDelta(t, 3+levels, most, 0)
		case tiered:
			require.InDelta(t, 3+3*levels, most, 0)
		case lazyLeveled:
			require.InDelta(t, 3+3*(levels-1)+1, most, 0)
		}
	}
	m := New(&s, &Trace{}, UsualPrices())
	styles := m.styles()
	require.Len(t, styles, 3)
	for _, st := range styles {
		require.Equal(t, st.Style == tiered, st.Now)
		require.Greater(t, st.Worst, st.Absent)
		require.Greater(t, st.Found, 1.0)
		require.Less(t, st.Found, 1+st.Absent+1e-9)
	}
	require.Less(t, styles[0].Absent, styles[1].Absent)
	for _, o := range m.settings(nil) {
		require.Zero(t, o.Budget, "a tiered store gets no budget")
	}
	s.Filter = "none"
	for _, st := range m.styles() {
		require.InDelta(t, st.Runs, st.Absent, 1e-9, "each run is read")
	}
}

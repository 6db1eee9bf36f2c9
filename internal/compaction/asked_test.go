package compaction

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
)

// MergeRange takes in what the tables of a range overlap, and finds nothing to do where one run is finished.
func TestMergeRange(t *testing.T) {
	t.Parallel()
	v := versionOf(t, table(0, "c", "f", mib), table(5, "e", "h", mib), table(5, "m", "n", mib),
		table(lastLevel, "a", "b", mib), table(lastLevel, "g", "k", mib), table(lastLevel, "m", "n", mib))
	finished := map[*version.Table]bool{}
	for _, t := range v.Levels[lastLevel].Tables() {
		finished[t] = true
	}
	for _, c := range []struct {
		lo, end string
		want    map[int][]int
	}{
		{"d", "d\x00", map[int][]int{0: {0}, 5: {1}, lastLevel: {4}}},
		{"m", "n", map[int][]int{5: {2}, lastLevel: {5}}},
		{"a", "b", nil},
		{"o", "p", nil},
	} {
		j := input(v).MergeRange([]byte(c.lo), []byte(c.end), finished)
		if c.want == nil {
			require.Nil(t, j, c.lo)
			continue
		}
		require.Equal(t, c.want, numbers(j), c.lo)
		require.True(t, j.Asked)
		require.Equal(t, Rules{}, j.Kind.Rules(), "it merges even what could be moved")
	}
	require.NotNil(t, input(v).MergeRange([]byte("a"), []byte("b"), nil), "not known to be finished")
}

func TestRewriteFilters(t *testing.T) {
	t.Parallel()
	v := versionOf(t, inRun(3, table(5, "a", "b", mib)), table(lastLevel, "a", "b", mib))
	one := v.Levels[5].Tables()
	j := input(v).RewriteFilters(version.RunID{Level: 5, Run: 3}, one)
	require.Equal(t, picked{RewriteFilters, "filters are rewritten", 5, map[int][]int{5: {0}}},
		picked{j.Kind, j.Reason, j.Output, numbers(j)})
	require.EqualValues(t, 3, j.Run)
	require.Nil(t, input(v).RewriteFilters(version.RunID{Level: 5, Run: 4}, one), "in another run")
	next, err := v.Apply(&manifest.Edit{Deleted: []manifest.DeletedTable{{Level: 5, Num: one[0].Num}}})
	require.NoError(t, err)
	require.Nil(t, input(next).RewriteFilters(version.RunID{Level: 5, Run: 3}, one), "gone")
	one[0].Quarantined = true
	require.Nil(t, input(v).RewriteFilters(version.RunID{Level: 5, Run: 3}, one))
}

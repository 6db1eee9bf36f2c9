package compaction

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
)

func TestDebt(t *testing.T) {
	t.Parallel()
	last := table(lastLevel, "a", "z", 400*mib)
	for _, c := range []struct {
		name   string
		style  Style
		tables []manifest.AddedTable
		debt   int64
	}{
		{"an empty store", Leveled, nil, 0},
		{"too few runs in level 0", Leveled, append(flushes(3), last), 0},
		{"level 0 and what it overlaps", Leveled, append(flushes(12), last), 120*mib + 400*mib},
		{"a level that must be drained", Leveled, []manifest.AddedTable{table(5, "a", "b", mib), last}, 401 * mib},
		{"a level with several runs", Leveled,
			[]manifest.AddedTable{inRun(2, table(lastLevel, "a", "z", mib)), last}, 401 * mib},
		{"a full level 0", Tiered, append(flushes(4), last), 40 * mib},
		{"a level 0 that goes on into the last level", LazyLeveled, append(flushes(10), last), 500 * mib},
		{"newer runs that outweigh the oldest", Tiered,
			[]manifest.AddedTable{table(5, "a", "b", 3*gib), last}, 3*gib + 400*mib},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := input(versionOf(t, c.tables...))
			in.Style = c.style
			require.InDelta(t, c.debt, in.Debt(), float64(c.debt)/100)
			require.Equal(t, c.debt > 0, Pick(in) != nil)
		})
	}
}

func TestDebtOfBlobFiles(t *testing.T) {
	t.Parallel()
	in := inputWithBlobs(garbageVersion(t))
	require.Greater(t, in.Debt(), int64(100e6), "the files with most garbage, and perhaps others")
	require.NotNil(t, Pick(in))
	require.EqualValues(t, 100e6, in.Debt(), "what is live in the candidate")
	in.State.GC.Exclude(1, true)
	in.State.DropStuck(in.Version)
	require.Zero(t, in.Debt())
}

// A store that was tiered may have newer runs in the oldest run's level that hide values, and nothing in level 0.
func TestDebtOfALevelThatHidesValuesInItself(t *testing.T) {
	t.Parallel()
	v := versionWith(t, []manifest.BlobFile{blobFile(1, 1e9)},
		inRun(2, with(table(lastLevel, "c", "d", mib), func(t *manifest.Table) { t.Garbage.HiddenBytes = 200e6 })),
		inRun(1, refersTo(table(lastLevel, "a", "f", 40*mib), 1, 1e9)))
	in := inputWithBlobs(v)
	s := in.BlobSpace()
	require.True(t, s.NeedsMerge())
	require.EqualValues(t, 41*mib, in.Debt())
	requirePick(t, in, &picked{MergeRuns, "the level has several runs", lastLevel, map[int][]int{lastLevel: {0, 1}}})
}

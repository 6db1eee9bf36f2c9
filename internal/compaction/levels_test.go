package compaction

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
)

// lastLevelOf returns a version with one table in the last level, which has bytes of separated values.
func lastLevelOf(t *testing.T, tables int64, separated uint64) *version.Version {
	t.Helper()
	only := table(lastLevel, "a", "b", tables)
	if separated == 0 {
		return versionOf(t, only)
	}
	only.Table.Blobs = []manifest.BlobRef{{Num: 1, Records: 1000, Bytes: separated}}
	return versionWith(t, []manifest.BlobFile{{Num: 1, ID: 1, Size: int64(separated) + 88, Records: 1000,
		ValueBytes: separated}}, only)
}

// Levels shrink as values are separated: those above the last one together may hide what MaxHidden allows, and level 0
// is compacted into one that is not much larger than it is.
func TestLevelsShrinkWithTheShareOfTables(t *testing.T) {
	o := defaults()
	for _, c := range []struct {
		name      string
		tables    int64
		separated uint64
		baseLevel int
	}{
		{"no separated values", 240 * mib, 0, lastLevel},
		{"handles of 16 KiB", 240 * mib, 100 * gib, 4},
		{"little of both", 600 << 10, 256 * mib, lastLevel},
		{"a large store", 100 * gib, 0, 3},
		{"a large store with a few separated values", 100 * gib, gib, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			baseLevel, targets := o.LevelTargets(lastLevelOf(t, c.tables, c.separated))
			require.Equal(t, c.baseLevel, baseLevel)
			require.Equal(t, max(c.tables, scaled(o.BaseLevelSize, tableShare(lastLevelOf(t, c.tables, c.separated)))),
				targets[lastLevel])
			for n := range baseLevel {
				require.Zero(t, targets[n])
			}
		})
	}
	_, targets := o.LevelTargets(lastLevelOf(t, 240*mib, 100*gib))
	require.InEpsilon(t, 0.028*240*mib, targets[5], 0.2)
	require.InEpsilon(t, targets[5]/levelFactor, targets[4], 0.2)
	require.Greater(t, targets[4], int64(128*mib/417), "what flushes of 128 MiB leave in tables")

	o.SpaceAmplification = 2
	for separated := range uint64(2) {
		_, targets = o.LevelTargets(lastLevelOf(t, 100*gib, separated*gib))
		require.InEpsilon(t, 90*gib, targets[5], 0.02, "all levels above have as much as the last one")
	}
}

func TestTablesOfSmallLevelsAreSmaller(t *testing.T) {
	o := defaults()
	v := lastLevelOf(t, 100*gib, 0)
	require.Zero(t, o.TargetSize(v, 0), "one table, however large")
	require.Equal(t, o.TargetFileSize/minFileShare, o.TargetSize(v, 2))
	require.Equal(t, 2*o.TargetFileSize, o.TargetSize(v, lastLevel))
	handles := lastLevelOf(t, mib, gib)
	require.EqualValues(t, minFileOfHandles, o.TargetSize(handles, lastLevel))
	o.Style = Tiered
	require.Equal(t, o.TargetFileSize, o.TargetSize(v, 2))
}

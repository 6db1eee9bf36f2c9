package compaction

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/compression"
	"github.com/siftkv/siftkv/internal/manifest"
)

// Tables are moved where rewriting would change nothing.
func TestMoves(t *testing.T) {
	t.Parallel()
	one := table(5, "c", "d", mib)
	deletes := func(t *manifest.Table) { t.Deletes = 1 }
	ranges := func(t *manifest.Table) { t.RangeDeletes = 1 }
	for _, c := range []struct {
		name   string
		kind   Kind
		output int
		tables []manifest.AddedTable // the inputs are those of level 5
		change func(in *Input)
		want   bool
	}{
		{"into an empty level", Merge, lastLevel, []manifest.AddedTable{one}, nil, true},
		{"a kind that rewrites", MergeRange, lastLevel, []manifest.AddedTable{one}, nil, false},
		{"within a level", Merge, 5, []manifest.AddedTable{one}, nil, false},
		{"two tables", Merge, lastLevel, []manifest.AddedTable{one, table(5, "e", "f", mib)}, nil, false},
		{"another compression", Merge, lastLevel, []manifest.AddedTable{one},
			func(in *Input) { in.Compression[lastLevel] = compression.Zstd }, false},
		{"tombstones into the last level", Merge, lastLevel, []manifest.AddedTable{with(one, deletes)}, nil, false},
		{"operands into the last level", Merge, lastLevel,
			[]manifest.AddedTable{with(one, func(t *manifest.Table) { t.Merges = 1 })}, nil, false},
		{"range tombstones that hide nothing", Merge, lastLevel, []manifest.AddedTable{with(one, ranges)}, nil, false},
		{"runs that share no keys", MergeRuns, lastLevel, []manifest.AddedTable{one, inRun(1, table(5, "e", "f", mib))},
			nil, true},
		{"runs that share keys", MergeRuns, lastLevel, []manifest.AddedTable{one, inRun(1, table(5, "d", "f", mib))},
			nil, false},
		{"a run with tombstones over nothing", MergeRuns, lastLevel, []manifest.AddedTable{with(one, deletes)}, nil,
			false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := input(versionOf(t, c.tables...))
			if c.change != nil {
				c.change(in)
			}
			j := &Job{Kind: c.kind, Level: 5, Output: c.output}
			j.Inputs[5] = in.Version.Levels[5].Tables()
			require.Same(t, j, in.Prepare(j))
			require.Equal(t, c.want, j.Kind == Move)
			require.Same(t, in.Version, j.Version)
		})
	}
}

// A table that would overlap much two levels down is merged, as the next compaction of it would be large.
func TestATableThatOverlapsMuchIsNotMoved(t *testing.T) {
	t.Parallel()
	for size, want := range map[int64]Kind{mib: Move, 100 * gib: Merge} {
		in := input(versionOf(t, with(table(4, "a", "z", mib), func(t *manifest.Table) { t.Deletes = 1 }),
			table(lastLevel, "b", "c", size)))
		j := &Job{Kind: Merge, Level: 4, Output: 5}
		j.Inputs[4] = in.Version.Levels[4].Tables()
		require.Equal(t, want, in.Prepare(j).Kind)
		require.Len(t, j.Older, 1)
	}
}

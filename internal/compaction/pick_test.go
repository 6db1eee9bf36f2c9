package compaction

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
)

// numbers returns the numbers of a job's inputs by level, without firstTable.
func numbers(j *Job) map[int][]int {
	nums := map[int][]int{}
	for level, tables := range j.Inputs {
		for _, t := range tables {
			nums[level] = append(nums[level], int(t.Num-firstTable))
		}
	}
	return nums
}

// A picked is what a test expects of a job.
type picked struct {
	kind   Kind
	reason string
	output int
	inputs map[int][]int // by level: places in the list of tables
}

// requirePick requires that Pick returns a job as expected, or none.
func requirePick(t *testing.T, in *Input, want *picked) *Job {
	t.Helper()
	j := Pick(in)
	if want == nil {
		require.Nil(t, j)
		return nil
	}
	require.NotNil(t, j)
	require.Equal(t, *want, picked{j.Kind, j.Reason, j.Output, numbers(j)})
	return j
}

// flushes returns tables of level 0 that share keys.
func flushes(n int) (tables []manifest.AddedTable) {
	for range n {
		tables = append(tables, table(0, "a", "z", 10*mib))
	}
	return tables
}

func TestPickOfALeveledStore(t *testing.T) {
	t.Parallel()
	few, many := flushes(4), flushes(12)
	large := []manifest.AddedTable{table(5, "a", "c", 1700*mib), table(5, "d", "f", 1700*mib),
		table(lastLevel, "a", "b", 9*gib), table(lastLevel, "d", "e", gib)}
	for _, c := range []struct {
		name   string
		tables []manifest.AddedTable
		change func(in *Input)
		want   *picked
	}{
		{"an empty store", nil, nil, nil},
		{"too few runs in level 0", few[:3], nil, nil},
		{"level 0 goes down", append(few[:4:4], table(lastLevel, "k", "l", mib),
			table(lastLevel, "zz", "zz", mib)), nil,
			&picked{Merge, reasonLevel0, lastLevel, map[int][]int{0: {0, 1, 2, 3}, lastLevel: {4}}}},
		{"level 0 waits until it is worth a merge", append(few[:4:4], table(lastLevel, "k", "l", 500*mib)), nil, nil},
		{"level 0 waits for a running job", append(many[:12:12], table(lastLevel, "k", "l", mib)), func(in *Input) {
			in.State.Reserve(lastLevel, version.Span{Lo: []byte("k"), Hi: []byte("m")})
		}, &picked{Merge, "level 0 has many files that cannot go down", 0,
			map[int][]int{0: {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}}},
		{"what rewrites least goes down", large, nil,
			&picked{Merge, "the level is over its size", lastLevel, map[int][]int{5: {1}, lastLevel: {3}}}},
		{"the other table, if that is busy", large, func(in *Input) {
			in.State.Reserve(lastLevel, version.Span{Lo: []byte("d"), Hi: []byte("e")})
		}, &picked{Merge, "the level is over its size", lastLevel, map[int][]int{5: {0}, lastLevel: {2}}}},
		{"several runs in a level", []manifest.AddedTable{inRun(2, table(5, "a", "c", mib)),
			inRun(1, table(5, "b", "d", mib)), table(lastLevel, "a", "d", mib)}, nil,
			&picked{MergeRuns, "the level has several runs", 5, map[int][]int{5: {0, 1}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := input(versionOf(t, c.tables...))
			if c.change != nil {
				c.change(in)
			}
			requirePick(t, in, c.want)
		})
	}
}

func TestPickOfATieredStore(t *testing.T) {
	t.Parallel()
	runs := func(level, n int, size int64) (tables []manifest.AddedTable) {
		for i := range n {
			tables = append(tables, inRun(uint64(n-i), table(level, "a", "z", size)))
		}
		return tables
	}
	damaged := func(in *Input) { in.Version.Levels[1].Runs[4].At(0).Quarantined = true }
	for _, c := range []struct {
		name   string
		style  Style
		tables []manifest.AddedTable
		change func(in *Input)
		want   *picked
	}{
		{"level 0 becomes a run of the next level", Tiered, flushes(4), nil,
			&picked{MergeRuns, reasonFull, 1, map[int][]int{0: {0, 1, 2, 3}}}},
		{"level 0 reaches the last level", LazyLeveled, flushes(4), nil,
			&picked{MergeRuns, reasonFull, lastLevel, map[int][]int{0: {0, 1, 2, 3}}}},
		{"the last level is much larger", LazyLeveled, append(flushes(4), table(lastLevel, "a", "z", gib)), nil,
			&picked{MergeRuns, reasonFull, 1, map[int][]int{0: {0, 1, 2, 3}}}},
		{"a level has room for a run", Tiered, runs(1, 3, mib), nil, nil},
		{"a full level", Tiered, runs(1, 4, mib), nil,
			&picked{MergeRuns, reasonFull, 2, map[int][]int{1: {0, 1, 2, 3}}}},
		{"one thread is left to level 0", Tiered, runs(1, 4, mib), func(in *Input) { in.BusyThreads = 1 }, nil},
		{"an older run is damaged", Tiered, runs(1, 5, mib), damaged,
			&picked{MergeRuns, "the level has all its runs, above a damaged one", 1, map[int][]int{1: {0, 1, 2, 3}}}},
		{"newer runs outweigh the oldest", Tiered, []manifest.AddedTable{table(3, "a", "z", 9*mib),
			table(lastLevel, "a", "z", mib)}, nil,
			&picked{MergeRuns, "the newer runs outweigh the oldest", lastLevel, map[int][]int{3: {0}, lastLevel: {1}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := input(versionOf(t, c.tables...))
			in.Style = c.style
			if c.change != nil {
				c.change(in)
			}
			requirePick(t, in, c.want)
		})
	}
}

// Tombstone clusters, expired values and old versions start a job in every style, unless a snapshot needs them.
func TestPickOfWhatCanBeDropped(t *testing.T) {
	t.Parallel()
	second := uint64(time.Second / time.Microsecond)
	clusters := with(table(5, "c", "f", mib), func(t *manifest.Table) {
		t.Entries, t.Deletes, t.DenseDeletes = 9000, 4200, 4200
	})
	expiring := with(table(5, "c", "f", mib), func(t *manifest.Table) { t.Expiring, t.LastExpiry = 600, 10*second })
	overwritten := with(table(lastLevel, "a", "f", mib), func(t *manifest.Table) { t.Overwritten = 500 })
	below := table(lastLevel, "a", "k", mib)
	for _, c := range []struct {
		name     string
		tables   []manifest.AddedTable
		now      uint64 // seconds
		snapshot bool   // that is older than all
		want     string // the reason, of a leveled store and of one with runs
		runs     string
		output   int
	}{
		{"nothing", []manifest.AddedTable{table(5, "c", "f", mib), below}, 0, false, "", "", 0},
		{"tombstone clusters", []manifest.AddedTable{clusters, below}, 0, false,
			ReasonTombstones, ReasonTombstones, lastLevel},
		{"tombstone clusters that a snapshot sees", []manifest.AddedTable{clusters, below}, 0, true, "", "", 0},
		{"values that will expire", []manifest.AddedTable{expiring, below}, 9, false, "", "", 0},
		{"values that have expired", []manifest.AddedTable{expiring, below}, 10, false,
			"a file is mostly tombstones, or values that expired or were overwritten",
			"a run is mostly tombstones, or values that expired or were overwritten", lastLevel},
		{"overwritten versions", []manifest.AddedTable{overwritten}, 0, false,
			"a file is mostly tombstones, or values that expired or were overwritten",
			"a run is mostly tombstones, or values that expired or were overwritten", lastLevel},
		{"overwritten versions that a snapshot sees", []manifest.AddedTable{overwritten}, 0, true, "", "", 0},
	} {
		for style := Leveled; style <= LazyLeveled; style++ {
			t.Run(fmt.Sprint(c.name, " ", style), func(t *testing.T) {
				in := input(versionOf(t, c.tables...))
				in.Style, in.Now, in.MemtableSize = style, c.now*second, 1<<10 // level 5 has a target
				if c.snapshot {
					in.OldestSnapshot = 1
				}
				want := c.want
				if style != Leveled {
					want = c.runs
				}
				j := Pick(in)
				if want == "" {
					require.Nil(t, j)
					return
				}
				require.NotNil(t, j)
				require.Equal(t, want, j.Reason)
				require.Equal(t, c.output, j.Output)
				require.Len(t, j.Tables(), len(c.tables))
			})
		}
	}
}

// An idle store waits for the moment at which values expire, and then has something to do.
func TestUntilGarbage(t *testing.T) {
	t.Parallel()
	second := uint64(time.Second / time.Microsecond)
	v := versionOf(t, with(table(lastLevel, "c", "f", mib), func(t *manifest.Table) {
		t.Expiring, t.LastExpiry = 600, 100*second
	}))
	for style := Leveled; style <= LazyLeveled; style++ {
		in := input(v)
		in.Style = style
		for Pick(in) == nil {
			wait := in.UntilGarbage()
			require.Greater(t, wait, time.Duration(0))
			require.LessOrEqual(t, in.Now, 100*second)
			in.Now += uint64(wait / time.Microsecond)
		}
		require.GreaterOrEqual(t, in.Now, 100*second)
		require.Zero(t, in.UntilGarbage())
	}
}

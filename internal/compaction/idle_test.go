package compaction

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
)

// unbounded pays for everything.
var unbounded = Idle{Flushed: math.MaxInt64, Free: math.MaxInt64}

// An idle store merges level 0, then the levels above the last, and only where that leaves one run less.
func TestPickOfAnIdleStore(t *testing.T) {
	t.Parallel()
	last := table(lastLevel, "a", "z", 100*mib)
	levels := []manifest.AddedTable{table(5, "a", "c", 100*mib), table(5, "d", "f", 50*mib), table(5, "g", "h", 50*mib),
		table(lastLevel, "d", "e", 40*mib), table(lastLevel, "g", "k", 40*mib), table(lastLevel, "l", "m", gib)}
	far := table(lastLevel, "zz", "zzz", gib)
	small, first64 := []manifest.AddedTable{}, []int{}
	for i := range 100 {
		small = append(small, table(5, fmt.Sprintf("%03d", i), fmt.Sprintf("%03d", i), mib))
		first64 = append(first64, i)[:min(i+1, pieceTables)]
	}
	small = append(small, table(lastLevel, "0", "9", 20*mib), far)
	down := func(inputs map[int][]int) *picked { return &picked{Merge, ReasonIdle, lastLevel, inputs} }
	for _, c := range []struct {
		name   string
		tables []manifest.AddedTable
		change func(in *Input)
		want   *picked
	}{
		{"a busy store", append(flushes(3), last), func(in *Input) { in.Idle = nil }, nil},
		{"runs of level 0", flushes(3), nil, down(map[int][]int{0: {0, 1, 2}})},
		{"a run of level 0, over another", append(flushes(1), last), nil,
			down(map[int][]int{0: {0}, lastLevel: {1}})},
		{"a run of level 0 alone", flushes(1), nil, nil},
		{"one run", []manifest.AddedTable{last}, nil, nil},
		{"runs without common keys", []manifest.AddedTable{table(0, "a", "c", mib), table(lastLevel, "d", "e", mib)},
			nil, nil},
		{"a level that is due", append(flushes(6), last), nil,
			&picked{Merge, reasonLevel0, lastLevel, map[int][]int{0: {0, 1, 2, 3, 4, 5}, lastLevel: {6}}}},
		{"a piece of a level", levels, nil, down(map[int][]int{5: {1, 2}, lastLevel: {3, 4}})},
		{"a small piece", levels, func(in *Input) { in.TargetFileSize = 10 * mib },
			down(map[int][]int{5: {1}, lastLevel: {3}})},
		{"a level between", []manifest.AddedTable{table(4, "a", "d", 100*mib), table(5, "c", "f", gib),
			table(lastLevel, "a", "b", 9*gib), table(lastLevel, "e", "h", gib), table(lastLevel, "i", "k", 30*gib)},
			nil,
			down(map[int][]int{4: {0}, 5: {1}, lastLevel: {2, 3}})},
		{"a damaged piece", levels, func(in *Input) { in.Version.Levels[5].Runs[0].At(1).Quarantined = true },
			down(map[int][]int{5: {2}, lastLevel: {4}})},
		{"level 0 with a damaged file", append(flushes(2), table(5, "a", "b", mib), table(lastLevel, "a", "b", mib),
			far), func(in *Input) {
			in.Version.Levels[0].Runs[0].At(0).Quarantined = true
		}, down(map[int][]int{5: {2}, lastLevel: {3}})},
		{"a piece that does not fit on the disk", []manifest.AddedTable{table(5, "a", "b", 100*mib),
			table(5, "c", "d", mib), table(lastLevel, "a", "b", 900*mib), table(lastLevel, "c", "d", 9*mib)},
			func(in *Input) { in.Idle.Free = gib }, down(map[int][]int{5: {1}, lastLevel: {3}})},
		{"a second table that is not paid for", levels, func(in *Input) { in.Idle.Flushed = 100 * mib },
			down(map[int][]int{5: {1}, lastLevel: {3}})},
		{"small tables", small, nil, down(map[int][]int{5: first64, lastLevel: {100}})},
		{"something runs", append(flushes(3), last), func(in *Input) { in.BusyThreads = 1 }, nil},
		{"an ingest", append(flushes(3), last), func(in *Input) {
			in.State.Reserve(lastLevel, version.Span{Lo: []byte("zz")})
		}, nil},
		{"a damaged file", append(flushes(3), last), func(in *Input) {
			in.Version.Levels[lastLevel].Runs[0].At(0).Quarantined = true
		}, nil},
		{"a full disk", append(flushes(3), last), func(in *Input) { in.Disk.Full = true }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := input(versionOf(t, c.tables...))
			idle := unbounded
			in.Idle = &idle
			if c.change != nil {
				c.change(in)
			}
			requirePick(t, in, c.want)
		})
	}
}

// Flushes or reads pay for what an idle store writes. The merge of this store writes 130 MiB, 30 of them
// from level 0.
func TestWhatPaysForIdleJobs(t *testing.T) {
	t.Parallel()
	v := versionOf(t, append(flushes(3), table(lastLevel, "a", "z", 100*mib),
		table(lastLevel, "zz", "zzz", 100*mib))...)
	for _, c := range []struct {
		name      string
		idle      Idle
		snapshots bool
		want      bool
	}{
		{"nothing", Idle{Free: gib}, false, false},
		{"flushes", Idle{Flushed: 100 * mib, Free: gib}, false, true},
		{"too few flushes", Idle{Flushed: 100*mib - 1, Free: gib}, false, false},
		{"reads", Idle{Lost: 100 * mib, Free: gib}, false, true},
		{"too few reads", Idle{Lost: 100*mib - 1, Free: gib}, false, false},
		{"reads, and flushes that paid for less", Idle{Flushed: -100 * mib, Lost: gib, Free: gib}, false, true},
		{"reads that paid for the whole store already", Idle{Flushed: -131 * mib, Lost: gib, Free: gib}, false, false},
		{"a snapshot", Idle{Flushed: 100 * mib, Free: gib}, true, false},
		{"a snapshot, and more flushes", Idle{Flushed: 200 * mib, Free: gib}, true, true},
		{"little room on the disk", Idle{Flushed: gib, Free: 260*mib - 1}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := input(v)
			in.Idle = &c.idle
			if c.snapshots {
				in.OldestSnapshot = 1
			}
			require.Equal(t, c.want, Pick(in) != nil)
		})
	}
}

// Scans pay for a merge soon, lookups whose filters say no rarely.
func TestWhatReadsAreWorth(t *testing.T) {
	t.Parallel()
	const bytes = 160 * mib
	last := Reads{Denied: 1, Index: 2, True: 3, Hits: 4, Blocks: 5, FromDisk: 6, Visits: 7, Scanned: 8}
	require.Zero(t, last.worth(&last))
	const visits, denied, absent, read = 6_300_000, 100_000_000, 8_000_000, 750_000
	for _, c := range []struct {
		name  string
		r     Reads
		bytes int64
	}{
		{"visits of scans", Reads{Visits: visits}, bytes},
		{"visits of scans that read", Reads{Visits: 730_000, Scanned: 730_000}, bytes},
		{"long scans", Reads{Visits: 730_000, Scanned: denied}, bytes},
		{"lookups that a filter answers", Reads{Denied: denied}, bytes},
		{"false positives", Reads{Index: absent, Blocks: absent}, bytes},
		{"false positives that read", Reads{Index: read, Blocks: read, FromDisk: read}, bytes},
		{"hits", Reads{Index: absent, True: absent, Hits: absent}, 0},
		{"hits without filters", Reads{Index: absent, Hits: absent}, 0},
		{"hits while they were counted", Reads{Index: absent, Hits: absent + 1}, 0},
		{"hits of filters, and lookups without", Reads{Index: 2 * absent, True: absent, Hits: absent}, bytes},
		{"many lookups", Reads{Index: 1 << 40, Blocks: 1 << 40, FromDisk: 1 << 40},
			(filterCost + readCost) << 40 / byteCost / idleFactor},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Reads{last.Denied + c.r.Denied, last.Index + c.r.Index, last.True + c.r.True, last.Hits + c.r.Hits,
				last.Blocks + c.r.Blocks, last.FromDisk + c.r.FromDisk, last.Visits + c.r.Visits,
				last.Scanned + c.r.Scanned}
			require.InDelta(t, c.bytes, r.worth(&last), 0.02*float64(c.bytes))
		})
	}
}

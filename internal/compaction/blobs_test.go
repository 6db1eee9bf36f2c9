package compaction

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
)

// inputWithBlobs is input with blob files of 64 MiB at most.
func inputWithBlobs(v *version.Version) *Input {
	in := input(v)
	in.BlobFileSize = 64 * mib
	return in
}

// garbageVersion returns a version of two tables of the last level and three blob files: both tables refer to the
// first, which has 900 MB of garbage of its 1 GB, the second refers to a file without garbage and to one with half.
func garbageVersion(t *testing.T) *version.Version {
	t.Helper()
	const mb = 1_000_000
	first := refersTo(table(lastLevel, "a", "f", 40*mib), 1, 50*mb)
	second := refersTo(table(lastLevel, "g", "k", 40*mib), 1, 50*mb)
	second = refersTo(refersTo(second, 2, 400*mb), 3, 200*mb)
	blobs := []manifest.BlobFile{blobFile(1, 1000*mb), blobFile(2, 400*mb), blobFile(3, 400*mb)}
	return versionWith(t, blobs, first, second)
}

func TestBlobSpace(t *testing.T) {
	t.Parallel()
	in := inputWithBlobs(garbageVersion(t))
	s := in.BlobSpace()
	require.InDelta(t, 700e6, s.Live, 0)
	require.InDelta(t, 1100e6, s.Garbage, 0)
	require.InDelta(t, 700e6, s.Needed, 0)
	require.InDelta(t, 0.3*700e6, s.Allowed, 1)
	require.InDelta(t, 1100e6-0.3*700e6, s.Over(), 1)
	require.True(t, s.NeedsGC())
	require.False(t, s.NeedsMerge())

	in.State.GC.Exclude(1, true)
	s = in.BlobSpace()
	require.InDelta(t, 200e6, s.Garbage, 0, "what cannot be collected does not count")
	require.False(t, s.NeedsGC())

	in = inputWithBlobs(garbageVersion(t))
	in.BlobSpaceLimit = 5
	s = in.BlobSpace()
	require.False(t, s.NeedsGC())
	in.Disk = Disk{Free: mib, WithObsolete: mib}
	s = in.BlobSpace()
	require.True(t, s.NeedsGC(), "the disk has no room for the garbage")
	require.Zero(t, input(versionOf(t, table(lastLevel, "a", "f", 40*mib))).BlobSpace())
}

// A batch goes step by step until no table refers to its candidates. It does not take files that cannot be read, nor
// the tables that are being compacted.
func TestBlobGCGoesByBatches(t *testing.T) {
	t.Parallel()
	for style := Leveled; style <= LazyLeveled; style++ {
		t.Run(fmt.Sprint(style), func(t *testing.T) {
			in := inputWithBlobs(garbageVersion(t))
			in.Style = style
			j := requirePick(t, in, &picked{CollectBlobs, ReasonGarbage, lastLevel, map[int][]int{lastLevel: {0, 1}}})
			require.Equal(t, map[uint64]bool{1: true}, j.Candidates)
			require.Empty(t, j.Gaps)
			require.False(t, j.Kind.Rules().MayMove)

			first := in.Version.Levels[lastLevel].Tables()[0]
			first.Compacting = true
			j = requirePick(t, in, &picked{CollectBlobs, ReasonGarbage, lastLevel, map[int][]int{lastLevel: {1}}})
			require.Equal(t, map[uint64]bool{1: true}, j.Candidates, "the batch goes on")
			first.Compacting = false

			in.Disk = Disk{Free: mib, WithObsolete: mib}
			requirePick(t, in, &picked{CollectBlobs, ReasonGarbage, lastLevel, map[int][]int{lastLevel: {0}}})

			in = inputWithBlobs(garbageVersion(t))
			in.Style = style
			in.State.GC.Exclude(1, true)
			requirePick(t, in, nil)
		})
	}
}

// A batch ends when its files are stuck, or it is abandoned.
func TestBatchesEnd(t *testing.T) {
	t.Parallel()
	in := inputWithBlobs(garbageVersion(t))
	require.NotNil(t, Pick(in))
	require.True(t, in.State.GC.running())
	require.False(t, in.State.GC.Exclude(1, true))
	require.True(t, in.State.GC.Exclude(1, true))
	in.State.DropStuck(in.Version)
	require.False(t, in.State.GC.running())

	in = inputWithBlobs(garbageVersion(t))
	require.NotNil(t, Pick(in))
	in.State.GC.Abandon()
	require.False(t, in.State.GC.running())
}

// On a full disk blob GC goes before what else is due.
func TestAFullDiskHasBlobGCFirst(t *testing.T) {
	t.Parallel()
	v := garbageVersion(t)
	e := &manifest.Edit{}
	for i := range 12 {
		a := table(0, "a", "z", 10*mib)
		a.Table.Num, a.Table.SmallestSeq, a.Table.LargestSeq = uint64(2000+i), 1000, 1000
		e.Added = append(e.Added, a)
	}
	v, err := v.Apply(e)
	require.NoError(t, err)
	in := inputWithBlobs(v)
	in.Style = Tiered
	require.Equal(t, reasonFull, Pick(in).Reason)
	require.False(t, in.OnlyGC())
	in.Disk.Full = true
	require.True(t, in.OnlyGC())
	require.Equal(t, ReasonGarbage, Pick(in).Reason)
}

// Values that are overwritten in their table, and seen by no snapshot, have the table rewritten in its place.
func TestDeadValuesAreRewritten(t *testing.T) {
	t.Parallel()
	v := versionWith(t, []manifest.BlobFile{blobFile(1, 1e9)},
		refersTo(table(lastLevel, "a", "f", 4*mib), 1, 400e6),
		with(refersTo(table(lastLevel, "g", "k", 4*mib), 1, 600e6), func(t *manifest.Table) {
			t.Garbage.Overwritten = 300e6
		}))
	in := inputWithBlobs(v)
	requirePick(t, in, &picked{Rewrite, ReasonDead, lastLevel, map[int][]int{lastLevel: {1}}})
	in.OldestSnapshot = 1
	requirePick(t, in, nil)
}

// What may be hidden by entries above has tables merged.
func TestHiddenValuesAreMerged(t *testing.T) {
	t.Parallel()
	hides := func(level int, hidden uint64) *version.Version {
		return versionWith(t, []manifest.BlobFile{blobFile(1, 1e9)},
			with(table(level, "c", "d", mib), func(t *manifest.Table) { t.Garbage.HiddenBytes = hidden }),
			table(max(level, 1), "k", "l", mib),
			refersTo(table(lastLevel, "a", "f", 40*mib), 1, 1e9))
	}
	few, many := hides(5, 10e6), hides(5, 200e6)
	requirePick(t, inputWithBlobs(few), nil)
	requirePick(t, inputWithBlobs(many), &picked{Merge, ReasonHidden, lastLevel, map[int][]int{5: {0}, lastLevel: {2}}})
	in := inputWithBlobs(many)
	in.Style = Tiered
	requirePick(t, in, &picked{MergeRuns, ReasonHidden, lastLevel, map[int][]int{5: {0, 1}, lastLevel: {2}}})
	in = inputWithBlobs(hides(0, 200e6))
	in.Style = Tiered
	requirePick(t, in, &picked{MergeRuns, ReasonHidden, lastLevel, map[int][]int{0: {0}, 1: {1}, lastLevel: {2}}})
}

// smallFiles returns a version with a table of the last level that has values in n small blob files, and in one of a
// size, while another table has values in one file more.
func smallFiles(t *testing.T, n int, largest int64) *version.Version {
	t.Helper()
	first, second := table(lastLevel, "a", "f", mib), table(lastLevel, "g", "k", 300*mib) // too large for both
	var blobs []manifest.BlobFile
	for i := range n {
		blobs = append(blobs, blobFile(uint64(i+1), 10_000))
		first = refersTo(first, uint64(i+1), 10_000)
	}
	blobs = append(blobs, blobFile(500, largest), blobFile(501, 10_000))
	first = refersTo(refersTo(first, 500, uint64(largest)), 501, 5000)
	return versionWith(t, blobs, first, refersTo(second, 501, 5000))
}

// Small blob files are joined if they are many, except for one that outweighs the others.
func TestSmallBlobFilesAreJoined(t *testing.T) {
	t.Parallel()
	requirePick(t, inputWithBlobs(smallFiles(t, manySmall-3, 10_000)), nil)
	for style := Leveled; style <= LazyLeveled; style++ {
		in := inputWithBlobs(smallFiles(t, manySmall, 2_000_000))
		in.Style = style
		j := requirePick(t, in, &picked{JoinBlobs, reasonSmall, lastLevel, map[int][]int{lastLevel: {0}}})
		require.Len(t, j.Candidates, manySmall)
		require.NotContains(t, j.Candidates, uint64(500), "it outweighs the others")
		require.NotContains(t, j.Candidates, uint64(501), "a table of another step refers to it")
		require.True(t, j.Kind.Rules().OneRange)
		in.State.GC.Exclude(1, true)
		requirePick(t, in, nil)
	}
}

// A caller's jobs take fewer files, of a range, and no files that came later.
func TestAskedBlobJobs(t *testing.T) {
	t.Parallel()
	in := inputWithBlobs(smallFiles(t, minJoined, 10_000))
	j := in.JoinRange(nil, nil, 4)
	require.Nil(t, j, "few files came before")
	j = in.JoinRange(nil, nil, 1000)
	require.True(t, j.Asked)
	require.Len(t, j.Candidates, minJoined+2)
	require.Nil(t, in.JoinRange([]byte("g"), nil, 1000))

	in = inputWithBlobs(garbageVersion(t))
	in.BlobSpaceLimit = 10
	require.Nil(t, Pick(in))
	j = in.CollectRange(nil, nil, 1000)
	require.True(t, j.Asked)
	require.Equal(t, CollectBlobs, j.Kind)
	require.Equal(t, map[uint64]bool{1: true, 3: true}, j.Candidates)
	require.Equal(t, map[uint64]bool{1: true}, in.CollectRange(nil, nil, 3).Candidates)
	require.Equal(t, map[uint64]bool{3: true}, in.CollectRange([]byte("g"), nil, 1000).Candidates)
	require.Nil(t, in.CollectRange([]byte("a"), []byte("b"), 1000))
}

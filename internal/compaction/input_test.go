package compaction

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
)

const mib, gib = 1 << 20, 1 << 30

// defaults returns the default options of a leveled store.
func defaults() Options {
	return Options{RunsPerLevel: 4, SpaceAmplification: 1.3, L0CompactionThreshold: 4, L0SlowdownThreshold: 12,
		L0StopThreshold: 36, MaxConcurrentCompactions: 2, MemtableSize: 32 * mib, BaseLevelSize: 64 * mib,
		TargetFileSize: 32 * mib, BlobSpaceLimit: 1.3}
}

// input returns an input with default options, without snapshots, of a store in which nothing runs.
func input(v *version.Version) *Input {
	return &Input{Options: defaults(), Version: v, OldestSnapshot: base.MaxSeqNum,
		Disk: Disk{Free: math.MaxInt64, WithObsolete: math.MaxInt64}, State: &State{}}
}

// table returns a table of a level with 1000 entries of keys from lo to hi.
func table(level int, lo, hi string, size int64) manifest.AddedTable {
	return manifest.AddedTable{Level: level, Table: manifest.Table{Size: size, Entries: 1000, Smallest: []byte(lo),
		Largest: []byte(hi)}}
}

// with returns a table with a change.
func with(a manifest.AddedTable, change func(*manifest.Table)) manifest.AddedTable {
	change(&a.Table)
	return a
}

// inRun returns a table as one of a run.
func inRun(run uint64, a manifest.AddedTable) manifest.AddedTable {
	a.Run = run
	return a
}

// firstTable is the number of the first table of versionOf; blob files have smaller ones.
const firstTable = 1000

// versionOf returns a version of tables: newer ones come first, and have larger sequence numbers. Blob files have 1000
// bytes for each record.
func versionOf(t testing.TB, tables ...manifest.AddedTable) *version.Version {
	t.Helper()
	return versionWith(t, nil, tables...)
}

// versionWith is versionOf with blob files.
func versionWith(t testing.TB, blobs []manifest.BlobFile, tables ...manifest.AddedTable) *version.Version {
	t.Helper()
	e := &manifest.Edit{AddedBlobs: blobs}
	for i, a := range tables {
		a.Table.Num = uint64(firstTable + i)
		a.Table.LargestSeq = base.SeqNum(10 * (len(tables) - i))
		a.Table.SmallestSeq = a.Table.LargestSeq - 9
		e.Added = append(e.Added, a)
	}
	v, err := new(version.Version).Apply(e)
	require.NoError(t, err)
	return v
}

// blobFile returns a blob file with records of a kilobyte each.
func blobFile(num uint64, bytes int64) manifest.BlobFile {
	return manifest.BlobFile{Num: num, ID: num, Size: bytes + 88, Records: uint64(bytes) / 1000,
		ValueBytes: uint64(bytes)}
}

// refersTo returns a table that has records of a kilobyte each in a blob file.
func refersTo(a manifest.AddedTable, num, bytes uint64) manifest.AddedTable {
	a.Table.Blobs = append(a.Table.Blobs, manifest.BlobRef{Num: num, Records: bytes / 1000, Bytes: bytes})
	return a
}

package kv

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// TestARotatedManifestDescribesTheStore replaces the manifest between flushes and
// compactions, as its size asks for in a store that lives long.
func TestARotatedManifestDescribesTheStore(t *testing.T) {
	mem := vfs.NewMem()
	db, err := Open("db", &Options{harness: harness.Harness{FS: mem}})
	require.NoError(t, err)
	want := storetest.Model{}
	for i := range 12 {
		k := fmt.Sprintf("key%02d", i)
		require.NoError(t, db.Set([]byte(k), []byte(k), nil))
		want[k] = k
		require.NoError(t, db.Flush(t.Context()))
		if i == 7 {
			require.NoError(t, db.Compact(t.Context(), nil, nil))
		}
		db.waitForBackground()
		old := db.manifest.Num()
		require.NoError(t, replaceManifest(db))
		num, err := manifest.Current(mem, "db")
		require.NoError(t, err)
		require.Greater(t, num, old)
		db.settle()
		_, err = mem.Stat(manifest.Path(db.dir, manifest.FileManifest, old))
		require.Error(t, err, "the replaced manifest is gone")
	}
	require.NoError(t, db.Set([]byte("last"), []byte("in the log"), nil))
	want["last"] = "in the log"
	require.NoError(t, db.Close())
	db, err = Open("db", &Options{harness: harness.Harness{FS: mem}})
	require.NoError(t, err)
	requireContents(t, want, db)
	require.NoError(t, db.Close())
}

// TestSequenceNumbersGoOn compacts everything into the last level, where entries
// have no sequence number of their own, and opens the store again: numbers must not
// start over, also when the manifest is replaced meanwhile.
func TestSequenceNumbersGoOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var last base.SeqNum
	for range 3 {
		db, err := Open(dir, &Options{harness: harness.Harness{MaxManifestSize: 2 << 10}})
		require.NoError(t, err)
		require.GreaterOrEqual(t, db.seq(), last)
		for i := range 20 {
			require.NoError(t, db.Set(fmt.Appendf(nil, "k%02d", i), []byte("v"), NoSync))
			require.NoError(t, db.Compact(t.Context(), nil, nil))
		}
		require.Zero(t, db.installed().LargestSeq, "an entry kept its number")
		last = db.seq()
		require.Equal(t, last, db.installed().LastSeq)
		require.NoError(t, db.Close())
	}
}

// A manifest is replaced as long as a store lives, however many tables it has, and no more
// often than edits have made up for the snapshot.
func TestAManifestIsReplacedInALargeStore(t *testing.T) {
	mem := vfs.NewMem()
	db, err := Open("db", &Options{harness: harness.Harness{FS: mem, MaxManifestSize: 2000}})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	edit := func(e *manifest.Edit) {
		require.NoError(t, db.applyEdit(func() *manifest.Edit { return e }, func() {}))
	}
	many := &manifest.Edit{}
	for i := range 500 {
		many.Added = append(many.Added, manifest.AddedTable{Level: lastLevel, Table: manifest.Table{
			Num: db.newFileNum(), Smallest: fmt.Appendf(nil, "%08d", 2*i), Largest: fmt.Appendf(nil, "%08d", 2*i+1)}})
	}
	edit(many)
	snapshot := db.manifest.SnapshotSize()
	require.Greater(t, snapshot, 5*db.opts.harness.MaxManifestSize)
	replaced, written := 0, int64(0)
	for range 2000 {
		before, size := db.manifest.Num(), db.manifest.Size()
		edit(&manifest.Edit{Added: []manifest.AddedTable{{Table: manifest.Table{Num: db.newFileNum()}}},
			Deleted: deletedFrom(db.installed().Level0())})
		if db.manifest.Num() != before {
			replaced++
		} else {
			written += db.manifest.Size() - size
		}
		require.LessOrEqual(t, db.manifest.Size(), 2*snapshot+1000)
	}
	require.Positive(t, replaced)
	require.LessOrEqual(t, int64(replaced-1)*snapshot, written)
}

func deletedFrom(level0 []*version.Table) (deleted []manifest.DeletedTable) {
	for _, t := range level0 {
		deleted = append(deleted, manifest.DeletedTable{Num: t.Num})
	}
	return deleted
}

// replaceManifest puts a manifest in force that describes the store as it is.
func replaceManifest(db *DB) error {
	db.manifest.Lock()
	defer db.manifest.Unlock()
	return db.manifest.Replace(db.installed(), db.newFileNum())
}

package kv

import (
	"io"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

// What these tests share with those of internal/storetest.
var (
	errDisk      = storetest.ErrDisk
	quickBackoff = storetest.Quick
	never        = storetest.Never

	nothing         = storetest.Nothing
	failOnce        = storetest.FailOnce
	withoutLeaks    = storetest.WithoutLeaks
	leakCheck       = storetest.LeakCheck
	randomBytes     = storetest.RandomBytes
	readDir         = storetest.ReadDir
	writeDir        = storetest.WriteDir
	only            = storetest.OnlyFile
	rewrite         = storetest.Rewrite
	flip            = storetest.Flip
	ingestFile      = storetest.IngestFile
	mustParse       = storetest.Filter
	mustFilter      = storetest.Filter
	shareKey        = storetest.ShareKey
	checkIdentities = storetest.RequireIdentities
	rangePolicies   = storetest.RangePolicies
	manyEdits       = storetest.ManyEdits
	readAll         = storetest.ReadAll
	requireDamage   = storetest.RequireDamage
	blobsOnDisk     = storetest.BlobsOnDisk
	readBenchKey    = storetest.ScatteredKey
)

func requireContents(t testing.TB, want storetest.Model, db Reader) {
	t.Helper()
	storetest.RequireContents(t, want, db)
}

func requireBlobs(t testing.TB, db *DB) int { return storetest.RequireBlobs(t, db) }

func blobNames(t testing.TB, db *DB) []string { return storetest.BlobNames(t, db) }

func requireOnlyLiveFiles(t testing.TB, db *DB) { storetest.RequireOnlyLiveFiles(t, db) }

func requireRecount(t testing.TB, db *DB) { storetest.Fine(t, storetest.RecountBlobs(db)) }

// verify checks the tables of an open store as Verify does those of a closed one.
func (d *DB) verify(w io.Writer) error { return storetest.Verify(d, w) }

func requireNothingCharged(t testing.TB, b *MemoryBudget) { storetest.RequireNothingCharged(t, b) }

func loadShare(db *DB, store, n int) error {
	return storetest.LoadShare(func(k, v []byte) error { return db.Set(k, v, Async) }, store, n)
}

func checkShare(db *DB, store, keys, n int) error {
	return storetest.CheckShare(db.Has, store, keys, n)
}

// separatedStore is a store of what storetest.WriteSeparated writes: values of at least 100 bytes are separated.
func separatedStore(t *testing.T, fsys vfs.FS) (*DB, *storetest.Clock, storetest.Model) {
	t.Helper()
	clock := &storetest.Clock{}
	db, err := Open("db", &Options{harness: harness.Harness{FS: fsys, BlobSize: 20 << 10}, SeparateFrom: 100,
		Merger:                Append(","),
		L0CompactionThreshold: 100, Clock: clock.Time, BlockSize: 300, Compression: sstable.NoCompression})
	require.NoError(t, err)
	m := storetest.WriteSeparated(t, db, NoSync)
	require.Greater(t, requireBlobs(t, db), 3)
	return db, clock, m
}

// requireFull checks that an error says that the disk is full, and what to do.
func requireFull(t *testing.T, err error, dir string) {
	t.Helper()
	require.ErrorIs(t, err, ErrReadOnly)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, "free space on the file system of "+dir)
}

package branches

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/remote"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// twoBranches returns the settings of a main branch and of a clone of it, with a model of each: they share files, and
// both have others, and writes in their logs.
func twoBranches(t *testing.T, s objstore.Store) (main, clone *objects.Config, inMain, inClone storetest.Model) {
	t.Helper()
	main, clone, inMain = branchOf(s, ""), branchOf(s, "clone"), storetest.Model{}
	db := openBranch(t, main)
	fillBranch(t, db, inMain, 0, 3000, "shared")
	require.NoError(t, db.Compact(t.Context(), nil, nil)) // otherwise each may compact all of it for itself
	require.NoError(t, main.Clone(t.Context(), "clone"))
	inClone = maps.Clone(inMain)
	fillBranch(t, db, inMain, 1000, 1500, "main")
	require.NoError(t, db.Close())
	db = openBranch(t, clone)
	fillBranch(t, db, inClone, 2000, 3500, "clone")
	require.NoError(t, db.Flush(t.Context()))
	fillBranch(t, db, inClone, 0, 10, "log of the clone")
	require.NoError(t, db.Close())
	return main, clone, inMain, inClone
}

// Backups of a branch, whole and since a mark, have what it has, and so do those of a view and of a checkpoint. They
// are restored into a directory, and into an object store, whose clones take increments too.
func TestBackupsOfABranch(t *testing.T) {
	t.Parallel()
	s := objstore.NewMem()
	_, clone, _, want := twoBranches(t, s)
	_, err := clone.PinCheckpoint(t.Context(), "c")
	require.NoError(t, err)
	before := storetest.KeysOf(t, s)
	for _, o := range []*objects.Config{clone, checkpointOf(clone, "c")} {
		view, err := kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10, Objects: o})
		require.NoError(t, err)
		stream, _ := backUpBranch(t, view, kv.BackupMark{})
		require.NoError(t, view.Close())
		dir := filepath.Join(t.TempDir(), "restored")
		require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(stream), dir, nil))
		requireSoundStore(t, dir, want)
	}
	require.Equal(t, before, storetest.KeysOf(t, s), "a backup of a view puts nothing there")

	db := openBranch(t, clone)
	full, mark := backUpBranch(t, db, kv.BackupMark{})
	old := maps.Clone(want)
	fillBranch(t, db, want, 500, 600, "later")
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	increment, _ := backUpBranch(t, db, mark)
	require.NoError(t, db.Close())
	dir := filepath.Join(t.TempDir(), "restored")
	copied := branchOf(objstore.NewMem(), "")
	require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(full), "", &kv.Options{Objects: copied}))
	require.NoError(t, copied.Clone(t.Context(), "b"))
	for i, stream := range [][]byte{full, increment} {
		state := []storetest.Model{old, want}[i]
		require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(stream), dir, nil))
		requireSoundStore(t, dir, state)
		require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(stream), "",
			&kv.Options{Objects: branchOf(copied.Store, "b")}))
		requireView(t, branchOf(copied.Store, "b"), state)
	}
	requireView(t, copied, old)
}

func backUpBranch(t *testing.T, db *kv.DB, since kv.BackupMark) ([]byte, kv.BackupMark) {
	t.Helper()
	var stream bytes.Buffer
	mark, err := db.Backup(t.Context(), &stream, since)
	require.NoError(t, err)
	return stream.Bytes(), mark
}

// requireSoundStore verifies the store in a directory, and requires that it has what is wanted.
func requireSoundStore(t *testing.T, dir string, want storetest.Model) {
	t.Helper()
	require.NoError(t, kv.Verify(t.Context(), dir, io.Discard))
	db := stores.OpenDir(t, dir, &kv.Options{ReadOnly: true}) // it takes the next increment
	storetest.RequireContents(t, want, db)
	require.NoError(t, db.Close())
}

// Verifying finds a damaged file in each branch that has it, and in no other.
func TestVerifyOfABranch(t *testing.T) {
	t.Parallel()
	s := objstore.NewMem()
	main, clone, _, _ := twoBranches(t, s)
	damage := func(o *objects.Config) error {
		db, err := kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10, Objects: o, CacheSize: -1})
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		return verifyBackup(t, db)
	}
	require.NoError(t, damage(main))
	require.NoError(t, damage(clone))
	flipTables(t, s, true)
	require.NoError(t, damage(main))
	var where *kv.CorruptionError
	require.ErrorAs(t, damage(clone), &where)
	flipTables(t, s, false)
	require.ErrorIs(t, damage(main), kv.ErrCorruption)
}

// verifyBackup reads all files of a store for a backup, and verifies the store that this restores.
func verifyBackup(t *testing.T, db *kv.DB) error {
	t.Helper()
	var stream bytes.Buffer
	if _, err := db.Backup(t.Context(), &stream, kv.BackupMark{}); err != nil {
		return err
	}
	dir := filepath.Join(t.TempDir(), "restored")
	require.NoError(t, kv.Restore(t.Context(), &stream, dir, nil))
	return kv.Verify(t.Context(), dir, io.Discard)
}

// flipTables changes a bit of each sorted file, of clones or of the main branch.
func flipTables(t *testing.T, s objstore.Store, clones bool) {
	t.Helper()
	n := 0
	for _, key := range storetest.KeysOf(t, s) {
		if !strings.HasSuffix(key, ".sst") || strings.HasPrefix(key, "data/") != clones {
			continue
		}
		data, err := objstore.ReadAll(t.Context(), s, key, 0)
		require.NoError(t, err)
		data[100] ^= 1
		require.NoError(t, s.Put(t.Context(), key, bytes.NewReader(data), int64(len(data))))
		n++
	}
	require.Positive(t, n)
}

// Views of a branch see what its writer does, and nothing of another branch. A view of a checkpoint stays as it is.
func TestViewsOfABranchAreRefreshed(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), objstore.NewMem()
	main, clone, inMain, inClone := twoBranches(t, s)
	_, err := clone.PinCheckpoint(ctx, "c")
	require.NoError(t, err)
	pinned := maps.Clone(inClone)
	open := func(o *objects.Config) *kv.DB {
		view, err := kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10, Objects: o,
			PollInterval: time.Microsecond})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, view.Close()) })
		return view
	}
	ofMain, ofClone, ofCheckpoint := open(main), open(clone), open(checkpointOf(clone, "c"))
	w, v := openBranch(t, clone), openBranch(t, main)
	for round := range 10 {
		waited := make(chan error)
		go func() { waited <- ofClone.WaitForChange(ctx) }()
		fillBranch(t, w, inClone, round*100, round*100+50, strconv.Itoa(round))
		require.NoError(t, w.Set([]byte("round"), fmt.Append(nil, round), kv.Sync))
		inClone["round"] = strconv.Itoa(round)
		require.NoError(t, <-waited)
		harness.Settle(w) // else its compactions may remove files of a view that is slower than their grace
		require.NoError(t, ofClone.Refresh(ctx))
		storetest.RequireContents(t, inClone, ofClone)
		harness.Settle(v)
		require.NoError(t, ofMain.Refresh(ctx))
		storetest.RequireContents(t, inMain, ofMain)
		fillBranch(t, v, inMain, round*200, round*200+50, "main "+strconv.Itoa(round))
		switch round % 3 {
		case 0:
			require.NoError(t, w.Compact(t.Context(), nil, nil))
			require.NoError(t, v.Flush(t.Context()))
		case 1:
			require.NoError(t, v.Compact(t.Context(), nil, nil))
			require.NoError(t, w.Flush(t.Context()))
		}
		require.NoError(t, v.Set([]byte("main"), fmt.Append(nil, round), kv.Sync))
		inMain["main"] = strconv.Itoa(round)
		harness.Settle(v)
		require.NoError(t, ofMain.Refresh(ctx))
		storetest.RequireContents(t, inMain, ofMain)
		require.NoError(t, ofCheckpoint.Refresh(ctx))
		storetest.RequireContents(t, pinned, ofCheckpoint)
	}
	ended, end := context.WithTimeout(ctx, time.Millisecond)
	defer end()
	require.ErrorIs(t, ofCheckpoint.WaitForChange(ended), context.DeadlineExceeded)
	require.NoError(t, w.Close())
	require.NoError(t, v.Close())
}

// A directory of a cache serves one branch after the other: of what they share, the second reads nothing again, and a
// branch that has the name of one that was dropped gets nothing of that.
func TestTheCacheOfABranch(t *testing.T) {
	t.Parallel()
	s := storetest.NewCountedStore()
	main, clone, inMain, inClone := twoBranches(t, s)
	reads := func(dir string, o *objects.Config, want storetest.Model) int64 {
		of := *o
		of.CacheSize = 64 << 20
		return s.Requests(func() {
			db, err := kv.OpenReadOnly(dir, &kv.Options{CacheSize: -1, Objects: &of})
			require.NoError(t, err)
			objects := harness.ObjectDir(db).(*remote.FS)
			objects.FlushCache() // it is read in the background
			for k, v := range want {
				got, err := db.Get([]byte(k))
				require.NoError(t, err)
				require.Equal(t, v, string(got))
			}
			objects.FlushCache()
			require.NoError(t, db.Close())
		})[objstore.Get]
	}
	var one, other string
	var alone int64
	for after := alone; after >= alone; { // what is not written to the cache yet is asked for again
		other, one = filepath.Join(t.TempDir(), "cache"), filepath.Join(t.TempDir(), "cache")
		alone = reads(other, clone, inClone)
		reads(one, main, inMain)
		after = reads(one, clone, inClone) // less, as they share files
	}
	for reads(one, main, inMain) >= alone || reads(one, clone, inClone) >= alone {
	}

	require.NoError(t, main.DropBranch(t.Context(), "clone"))
	require.NoError(t, main.Clone(t.Context(), "clone"))
	inClone = maps.Clone(inMain)
	db := openBranch(t, clone)
	fillBranch(t, db, inClone, 2000, 3500, "second")
	require.NoError(t, db.Close())
	for range 3 {
		reads(one, clone, inClone)
		reads(one, main, inMain)
		reads(other, clone, inClone)
	}
}

package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// restoreTo restores a stream into an object store that never waits between tries.
func restoreTo(s objstore.Store, stream []byte) error {
	return kv.Restore(context.Background(), bytes.NewReader(stream), "",
		&kv.Options{Objects: &objects.Config{Store: s, Patience: time.Nanosecond}})
}

// requireInObjects checks a store in an object store against a model, as a reader does; nil: there is none.
func requireInObjects(t *testing.T, s objstore.Store, want storetest.Model) {
	t.Helper()
	view, err := kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10, Objects: &objects.Config{Store: s}})
	if want == nil {
		require.ErrorIs(t, err, kv.ErrNotExist)
		return
	}
	require.NoError(t, err)
	storetest.RequireContents(t, want, view)
	require.NoError(t, storetest.Verify(view, io.Discard))
	require.NoError(t, view.Close())
}

// requireCollected checks that a writer comes to delete all sorted files and blob files that the store does not have.
func requireCollected(t *testing.T, s objstore.Store, want storetest.Model) {
	t.Helper()
	db, err := kv.Open("", &kv.Options{L0CompactionThreshold: 100, L0SlowdownThreshold: 200, L0StopThreshold: 300,
		Objects: &objects.Config{Store: s, Grace: -1}})
	require.NoError(t, err)
	storetest.RequireContents(t, want, db)
	require.NoError(t, db.Set([]byte("a write"), nil, kv.NoSync))
	require.NoError(t, db.Flush(t.Context())) // with a list of files, collecting begins
	storetest.Until(func() bool {
		files, release, err := harness.FilesOf(db)
		require.NoError(t, err)
		live := files.Version.BlobTotals().Files
		files.Version.All(func(int, *version.Table) { live++ })
		release()
		there := 0
		for _, err := range s.List(t.Context(), "sst/", "") {
			require.NoError(t, err)
			there++
		}
		require.GreaterOrEqual(t, there, live)
		return there == live
	})
	require.NoError(t, db.Close())
}

// backupChain returns a full backup and two increments, and what the store has at each.
func backupChain(t *testing.T, from int) (streams [3][]byte, models [3]storetest.Model) {
	db, m := stores.OfTables(t, from)
	var mark kv.BackupMark
	for i := range streams {
		streams[i], mark = stores.BackUp(t, db, mark)
		models[i] = m
		m = stores.AddTables(t, db, m, fmt.Sprint("more", i), 2)
		require.NoError(t, db.Compact(t.Context(), nil, nil))
	}
	return streams, models
}

func TestRestoreIntoAnObjectStore(t *testing.T) {
	stores.InTablesAndSeparated(t, testRestoreIntoAnObjectStore)
}

func testRestoreIntoAnObjectStore(t *testing.T, from int) {
	streams, models := backupChain(t, from)
	other, _ := stores.OfTables(t, from)
	otherFull, _ := stores.BackUp(t, other, kv.BackupMark{})
	s := objstore.NewMem()
	refuse := func(want error, streams ...[]byte) {
		t.Helper()
		for _, stream := range streams {
			before := storetest.KeysOf(t, s)
			require.ErrorIs(t, restoreTo(s, stream), want)
			require.Equal(t, before, storetest.KeysOf(t, s), "nothing was written")
		}
	}
	require.ErrorIs(t, restoreTo(s, streams[1]), kv.ErrBackupMismatch)
	requireInObjects(t, s, nil)
	for i, stream := range streams {
		require.NoError(t, restoreTo(s, stream))
		requireInObjects(t, s, models[i])
		refuse(kv.ErrBackupMismatch, otherFull)
		before := storetest.KeysOf(t, s)
		require.NoError(t, restoreTo(s, stream), "once more changes nothing")
		require.Equal(t, before, storetest.KeysOf(t, s))
	}
	refuse(kv.ErrBackupMismatch, streams[0], streams[1])
	refuse(kv.ErrCorruption, []byte("no backup at all, but longer than a preamble"))
	requireCollected(t, s, models[2])

	// A writer is not fenced by what is refused; nor does its store take increments.
	s = objstore.NewMem()
	require.NoError(t, restoreTo(s, streams[0]))
	db := openObjects(t, s, nil)
	require.NoError(t, db.Set([]byte("more"), nil, kv.Sync))
	require.ErrorIs(t, restoreTo(s, streams[1]), kv.ErrBackupMismatch)
	require.ErrorIs(t, restoreTo(s, streams[0]), kv.ErrBackupMismatch)
	require.NoError(t, db.Set([]byte("more"), nil, kv.Sync))
	require.NoError(t, db.Close())
	require.ErrorIs(t, restoreTo(s, streams[1]), kv.ErrBackupMismatch)

	// Into one that ignores conditions nothing is restored.
	careless := unconditional{objstore.NewMem()}
	require.ErrorIs(t, restoreTo(careless, streams[0]), objstore.ErrUnconditional)
	for o, err := range careless.List(t.Context(), "", "") {
		require.NoError(t, err)
		require.Failf(t, "something was left", "%v", o)
	}
}

// At each request the object store fails: for good, or once, or the process dies. The store is the one
// before or the one after, and the restore can be made again.
func TestRestoreIntoAnObjectStoreThatFails(t *testing.T) {
	t.Parallel()
	stores.InTablesAndSeparated(t, testRestoreIntoAnObjectStoreThatFails)
}

func testRestoreIntoAnObjectStoreThatFails(t *testing.T, from int) {
	streams, models := backupChain(t, from)
	broken, got := 0, 0
	for i := range 2 {
		before := storetest.Model(nil)
		if i > 0 {
			before = models[i-1]
		}
		for name, fault := range map[string]objstoretest.Fault{
			"refused":    {Outcome: objstoretest.NotPerformed},
			"dead":       {Outcome: objstoretest.NotPerformed, Cut: true},
			"dead after": {Cut: true},
			"lost":       {Outcome: objstoretest.LostReply},
			"late":       {Outcome: objstoretest.Late, Cut: true},
		} {
			for n := int64(1); ; n++ {
				s := objstore.NewMem()
				if i > 0 {
					require.NoError(t, restoreTo(s, streams[i-1]))
				}
				faults := objstoretest.NewFaults(s, uint64(n))
				var calls atomic.Int64 // but those of the check of conditions
				faults.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
					if !strings.HasPrefix(c.Key, "check/") && calls.Add(1) == n {
						f = fault
					}
					return f
				})
				err := restoreTo(faults, streams[i])
				faults.Deliver()
				what := fmt.Sprintf("%s at request %d of %d: %v", name, n, calls.Load(), err)
				if err != nil {
					broken++
					view, viewErr := kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10,
						Objects: &objects.Config{Store: s}})
					switch {
					case viewErr != nil:
						require.ErrorIs(t, viewErr, kv.ErrNotExist, what)
						require.Nil(t, before, what)
					default:
						_, missing := view.Get([]byte("more0/1"))
						if i > 0 && missing != nil {
							storetest.RequireContents(t, before, view)
						} else {
							storetest.RequireContents(t, models[i], view)
							got++
						}
						require.NoError(t, view.Close())
					}
				}
				require.NoError(t, restoreTo(s, streams[i]), what)
				requireInObjects(t, s, models[i])
				if n%5 == 0 {
					requireCollected(t, s, models[i])
				}
				if calls.Load() < n {
					break
				}
			}
		}
	}
	require.Greater(t, broken, 60)
	require.Positive(t, got, "some broke off after the store was there")
}

// A stream that breaks off leaves no store, wherever it does; the next call begins from the start.
func TestRestoreIntoAnObjectStoreOfAStreamThatBreaksOff(t *testing.T) {
	t.Parallel()
	stores.InTablesAndSeparated(t, testRestoreIntoAnObjectStoreOfAStreamThatBreaksOff)
}

func testRestoreIntoAnObjectStoreOfAStreamThatBreaksOff(t *testing.T, from int) {
	streams, models := backupChain(t, from)
	for n := 0; n < len(streams[0]); n += 97 {
		s := objstore.NewMem()
		err := restoreTo(s, streams[0][:n])
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, n)
		if unfinished, ok := errors.AsType[*kv.RestoreError](err); ok {
			require.Zero(t, unfinished.Offset)
			require.Contains(t, err.Error(), "call Restore again with the whole stream: ")
		}
		requireInObjects(t, s, nil)
		require.ErrorIs(t, restoreTo(s, streams[0][n:]), map[bool]error{true: nil, false: kv.ErrCorruption}[n == 0], n)
		require.NoError(t, restoreTo(s, streams[0]))
		requireInObjects(t, s, models[0])
		require.NoError(t, restoreTo(s, streams[1]))
		requireInObjects(t, s, models[1])
	}
}

// A restore that its context ends leaves no store, and says why it ended.
func TestRestoreIntoAnObjectStoreIsBrokenOff(t *testing.T) {
	stores.InTablesAndSeparated(t, testRestoreIntoAnObjectStoreIsBrokenOff)
}

func testRestoreIntoAnObjectStoreIsBrokenOff(t *testing.T, from int) {
	streams, models := backupChain(t, from)
	s := objstore.NewMem()
	ctx, cancel := context.WithCancel(t.Context())
	begin := bytes.NewReader(streams[0][:len(streams[0])/2])
	half := io.MultiReader(begin, storetest.ReaderFunc(func([]byte) (int, error) {
		cancel()
		return 0, context.Cause(ctx)
	}))
	err := kv.Restore(ctx, half, "", &kv.Options{Objects: &objects.Config{Store: s}})
	require.ErrorIs(t, err, context.Canceled)
	requireInObjects(t, s, nil)
	require.NoError(t, restoreTo(s, streams[0]))
	requireCollected(t, s, models[0])
}

// restoreUntilKilled restores the file stream into the object store objects, with a step before each read.
func restoreUntilKilled(dir string) error {
	s, err := objstore.OpenDir(filepath.Join(dir, "objects"))
	if err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(dir, "stream"))
	if err != nil {
		return err
	}
	return kv.Restore(context.Background(), storetest.ReaderFunc(func(p []byte) (int, error) {
		storetest.Step()
		return f.Read(p)
	}), "", &kv.Options{Objects: &objects.Config{Store: s}})
}

func TestRestoreIntoAnObjectStoreIsKilled(t *testing.T) {
	t.Parallel()
	stores.InTablesAndSeparated(t, testRestoreIntoAnObjectStoreIsKilled)
}

func testRestoreIntoAnObjectStoreIsKilled(t *testing.T, from int) {
	streams, models := backupChain(t, from)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "stream"), streams[0], 0o600))
	s, err := objstore.OpenDir(filepath.Join(dir, "objects"))
	require.NoError(t, err)
	orphans := 0
	for reads := 1; reads < 40; reads += 7 {
		if !storetest.KillAfter(t, "restore", dir, reads) {
			break
		}
		requireInObjects(t, s, nil)
		for _, key := range storetest.KeysOf(t, s) {
			if strings.HasPrefix(key, "sst/") {
				orphans++
			}
		}
	}
	require.Positive(t, orphans)
	require.NoError(t, restoreTo(s, streams[0]))
	requireCollected(t, s, models[0])
	require.NoError(t, s.Close())
}

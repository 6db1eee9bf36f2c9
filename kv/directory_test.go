//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package kv

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// restoreBelow puts a copy of a store in its place, as an operator does who restores a backup, and returns where the
// store is now and what the copy is.
func restoreBelow(t *testing.T, db *DB, dir string) (away string, restored map[string]string) {
	t.Helper()
	backup := dir + ".backup"
	away = dir + ".old"
	require.NoError(t, db.Checkpoint(t.Context(), backup))
	require.NoError(t, os.Rename(dir, away))
	require.NoError(t, os.Rename(backup, dir))
	return away, readDir(t, dir)
}

// A store below which a backup is restored writes nothing there and removes nothing there. It takes no more writes
// once it needs a new log, reads go on, and all that it took is in the directory that was moved.
func TestABackupIsRestoredBelowAStore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	o := &Options{MemtableSize: 64 << 10, L0CompactionThreshold: 2, harness: harness.Harness{Backoff: quickBackoff}}
	for _, c := range []struct {
		name string
		o    *WriteOptions
	}{{"without Sync", NoSync}, {"Sync", Sync}} {
		withoutLeaks(func() {
			db := openDir(t, dir, o)
			value := strings.Repeat(c.name, 100)
			m := storetest.Model{}
			for i := range 1000 {
				k := strconv.Itoa(i % 300)
				m.Set(k, value)
				set(t, db, k, value)
			}
			away, restored := restoreBelow(t, db, dir)
			var err error
			for i := 0; err == nil; i++ {
				k, v := fmt.Sprint("later", i), value+strconv.Itoa(i)
				if err = db.Set([]byte(k), []byte(v), c.o); err == nil {
					m.Set(k, v)
				}
				require.Less(t, i, 10_000)
			}
			require.ErrorIs(t, err, ErrReadOnly)
			require.ErrorIs(t, err, ErrDirectoryMoved)
			require.NotErrorIs(t, err, fs.ErrNotExist)
			require.ErrorContains(t, err, dir+" is another one now; move the store's directory back to "+dir)
			require.ErrorIs(t, db.Flush(t.Context()), ErrDirectoryMoved)
			require.ErrorIs(t, db.resume(true), ErrDirectoryMoved)
			requireContents(t, m, db)
			require.Equal(t, restored, readDir(t, dir))
			require.ErrorIs(t, db.Close(), ErrDirectoryMoved)
			require.Equal(t, restored, readDir(t, dir))

			require.NoError(t, Verify(t.Context(), dir, io.Discard))
			require.NoError(t, os.RemoveAll(dir))
			require.NoError(t, os.Rename(away, dir))
			require.NoError(t, Verify(t.Context(), dir, io.Discard))
			db = openDir(t, dir, o)
			requireContents(t, m, db)
			require.NoError(t, db.Close())
			require.NoError(t, os.RemoveAll(dir))
		})
	}
}

// A compaction that is under way ends in the directory that was moved, as do the removals that follow an edit.
func TestACompactionOfAMovedDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	db := openDir(t, dir, &Options{L0CompactionThreshold: 50, harness: harness.Harness{Backoff: quickBackoff}})
	m := storetest.Model{}
	for i := range 5 {
		m.Set("k", strconv.Itoa(i))
		set(t, db, "k", strconv.Itoa(i))
		require.NoError(t, db.Flush(t.Context()))
	}
	away, restored := restoreBelow(t, db, dir)
	require.ErrorIs(t, db.Compact(t.Context(), nil, nil), ErrDirectoryMoved)
	requireContents(t, m, db)
	require.Equal(t, restored, readDir(t, dir))

	require.NoError(t, os.Rename(dir, dir+".backup"))
	require.ErrorIs(t, db.resume(true), fs.ErrNotExist)
	require.NoError(t, os.Rename(away, dir))
	db.untilResumed()
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	requireContents(t, m, db)
	require.NoError(t, db.Close())
	require.NoError(t, Verify(t.Context(), dir, io.Discard))
}

// A store that is closed before it notices has written everything to its own directory, and says where that is.
func TestCloseOfAMovedDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	db := openDir(t, dir, nil)
	require.NoError(t, db.Set([]byte("a"), []byte("1"), nil))
	away, restored := restoreBelow(t, db, dir)
	require.NoError(t, db.Set([]byte("b"), []byte("2"), Async))
	err := db.Close()
	require.ErrorIs(t, err, ErrDirectoryMoved)
	require.NotErrorIs(t, err, ErrReadOnly)
	require.ErrorContains(t, err, "what was written is in the directory that was opened as "+dir)
	require.Equal(t, restored, readDir(t, dir))
	db = openDir(t, away, nil)
	requireContents(t, storetest.Model{"a": "1", "b": "2"}, db)
	require.NoError(t, db.Close())

	db = openDir(t, away, &Options{ReadOnly: true})
	require.NoError(t, os.Rename(away, away+"er"))
	requireContents(t, storetest.Model{"a": "1", "b": "2"}, db)
	require.NoError(t, db.Close(), "it has written nothing")
}

// A store is where a symbolic link leads when it is opened, not where it leads later.
func TestALinkToAStoreIsChanged(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	link, first, second := filepath.Join(parent, "data"), filepath.Join(parent, "1"), filepath.Join(parent, "2")
	require.NoError(t, os.Mkdir(first, 0o700))
	require.NoError(t, os.Symlink("1", link))
	db := openDir(t, link, nil)
	require.NoError(t, db.Set([]byte("a"), []byte("1"), nil))
	require.NoError(t, db.Checkpoint(t.Context(), second))
	before := readDir(t, second)
	require.NoError(t, os.Symlink("2", link+".new"))
	require.NoError(t, os.Rename(link+".new", link))
	require.NoError(t, db.Set([]byte("b"), []byte("2"), nil))
	require.ErrorIs(t, db.Flush(t.Context()), ErrDirectoryMoved)
	require.ErrorIs(t, db.Close(), ErrDirectoryMoved)
	require.Equal(t, before, readDir(t, second))
	db = openDir(t, first, nil)
	requireContents(t, storetest.Model{"a": "1", "b": "2"}, db)
	require.NoError(t, db.Close())
}

// A view goes on reading the directory that it was opened in, and Refresh says that another has the name.
func TestAViewOfAMovedDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	db := openDir(t, dir, nil)
	m := storetest.Model{}
	for i := range 8 { // more tables than the view may have open
		m.Set(strconv.Itoa(i), "1")
		set(t, db, strconv.Itoa(i), "1")
		require.NoError(t, db.Flush(t.Context()))
	}
	// The cleaner takes a registration that is not locked yet for that of a dead reader, and cannot remove it from a
	// directory that was moved meanwhile.
	db.settle()
	view, err := OpenReadOnly(dir, &Options{MaxOpenFiles: 4, CacheSize: -1})
	require.NoError(t, err)
	away, restored := restoreBelow(t, db, dir)
	require.NoError(t, db.Set([]byte("later"), nil, nil))
	require.ErrorIs(t, view.Refresh(t.Context()), ErrDirectoryMoved)
	require.ErrorContains(t, view.Refresh(t.Context()), "close the view, and open what "+dir+" is now")
	requireContents(t, m, view)
	require.ErrorIs(t, db.Close(), ErrDirectoryMoved)
	requireContents(t, m, view)
	require.NoError(t, view.Close())
	require.Equal(t, restored, readDir(t, dir))
	names, err := os.ReadDir(away)
	require.NoError(t, err)
	for _, e := range names {
		require.False(t, strings.HasPrefix(e.Name(), "READER"), "the view has left %s", e.Name())
	}
}

// OpenContext does not wait for a store that has another name by now, and does not open it.
func TestOpenContextWaitsForADirectoryThatIsMoved(t *testing.T) {
	t.Parallel()
	for _, closed := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "data")
		db := openDir(t, dir, nil)
		var away string
		var restored map[string]string
		_, err := openStore(t.Context(), dir, nil, func(d *DB) error {
			require.ErrorIs(t, d.tryLock(), ErrLocked)
			away, restored = restoreBelow(t, db, dir)
			if closed {
				require.ErrorIs(t, db.Close(), ErrDirectoryMoved)
			}
			return waitLock(t.Context(), d.tryLock)
		})
		require.ErrorIs(t, err, ErrDirectoryMoved)
		require.ErrorContains(t, err, "open it again")
		if !closed {
			require.ErrorIs(t, db.Close(), ErrDirectoryMoved)
		}
		require.Equal(t, restored, readDir(t, dir))
		require.NoError(t, Verify(t.Context(), away, io.Discard))
	}
}

// An interposedContext calls a function whenever it is asked whether it has ended.
type interposedContext struct {
	context.Context
	asked func()
}

func (c interposedContext) Err() error {
	c.asked()
	return c.Context.Err()
}

// A checkpoint whose directory is replaced while it is written fails, and removes its own files, not another's of the
// same names.
func TestTheDirectoryOfACheckpointIsReplaced(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	db := openDir(t, filepath.Join(parent, "data"), nil)
	for range 3 {
		set(t, db, "k", "v")
		require.NoError(t, db.Flush(t.Context()))
	}
	other, dir, away := filepath.Join(parent, "other"), filepath.Join(parent, "copy"), filepath.Join(parent, "away")
	require.NoError(t, db.Checkpoint(t.Context(), other))
	var before map[string]string
	ctx := interposedContext{t.Context(), func() {
		if names, err := os.ReadDir(dir); before == nil && err == nil && len(names) == 2 {
			require.NoError(t, os.Rename(dir, away))
			require.NoError(t, os.Rename(other, dir))
			before = readDir(t, dir)
		}
	}}
	require.ErrorIs(t, db.Checkpoint(ctx, dir), ErrDirectoryMoved)
	require.NotNil(t, before)
	require.Equal(t, before, readDir(t, dir))
	require.Empty(t, readDir(t, away))

	// What is there when it begins is found by a look at the directory that was opened.
	require.ErrorContains(t, db.Checkpoint(t.Context(), dir), "is not empty")
	require.NoError(t, db.Set([]byte("k"), nil, nil))
	require.NoError(t, db.Close())
}

// A restore below which another store is put writes nothing there, and goes on in its directory once that is back.
func TestTheDirectoryOfARestoreIsReplaced(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	db := openDir(t, filepath.Join(parent, "data"), nil)
	m := storetest.Model{}
	for i := range 3 {
		m.Set(strconv.Itoa(i), strings.Repeat("v", 1000))
		set(t, db, strconv.Itoa(i), strings.Repeat("v", 1000))
		require.NoError(t, db.Flush(t.Context()))
	}
	other, dir, away := filepath.Join(parent, "other"), filepath.Join(parent, "copy"), filepath.Join(parent, "away")
	require.NoError(t, db.Checkpoint(t.Context(), other))
	var stream bytes.Buffer
	_, err := db.Backup(t.Context(), &stream, BackupMark{})
	require.NoError(t, err)
	require.NoError(t, db.Close())

	var before map[string]string
	ctx := interposedContext{t.Context(), func() {
		if names, err := os.ReadDir(dir); before == nil && err == nil && len(names) > 2 {
			require.NoError(t, os.Rename(dir, away))
			require.NoError(t, os.Rename(other, dir))
			before = readDir(t, dir)
		}
	}}
	err = Restore(ctx, bytes.NewReader(stream.Bytes()), dir, nil)
	require.ErrorIs(t, err, ErrDirectoryMoved)
	require.ErrorIs(t, err, ErrRestoreUnfinished)
	require.NotNil(t, before)
	require.Equal(t, before, readDir(t, dir))
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.Rename(away, dir))
	require.NoError(t, Restore(t.Context(), bytes.NewReader(stream.Bytes()), dir, nil))
	db = openDir(t, dir, nil)
	requireContents(t, m, db)
	require.NoError(t, db.Close())
}

// The directory of a log beside an object store may be replaced as that of a store may: nothing is written to the other
// one, and nothing is removed there.
func TestTheDirectoryOfALocalLogIsReplaced(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	o := &Options{MemtableSize: 64 << 10, harness: harness.Harness{Backoff: quickBackoff},
		Objects: &objects.Config{Store: objstore.NewMem(), LocalLog: true}}
	db := openDir(t, dir, o)
	require.NoError(t, db.Set([]byte("a"), []byte("1"), nil))
	away := dir + ".old"
	require.NoError(t, os.Rename(dir, away))
	require.NoError(t, os.CopyFS(dir, os.DirFS(away)))
	restored := readDir(t, dir)
	m := storetest.Model{"a": "1"}
	var err error
	for i := 0; err == nil; i++ {
		k := strconv.Itoa(i)
		if err = db.Set([]byte(k), make([]byte, 1000), NoSync); err == nil {
			m.Set(k, string(make([]byte, 1000)))
		}
		require.Less(t, i, 1000)
	}
	require.ErrorIs(t, err, ErrReadOnly)
	require.ErrorIs(t, err, ErrDirectoryMoved)
	require.ErrorContains(t, err, "move the store's directory back to "+dir)
	requireContents(t, m, db)
	require.Equal(t, restored, readDir(t, dir))
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.Rename(away, dir))
	db.untilResumed()
	require.NoError(t, db.Set([]byte("b"), []byte("2"), nil))
	require.NoError(t, db.Close())
	db = openDir(t, dir, o)
	m.Set("b", "2")
	requireContents(t, m, db)
	require.NoError(t, db.Close())
}

// A verification below which another store is put reads nothing of that, and says that the directory was moved. The
// other store has no lock file, and gets none.
func TestTheDirectoryOfAVerificationIsReplaced(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dir, other, away := filepath.Join(parent, "data"), filepath.Join(parent, "other"), filepath.Join(parent, "away")
	db := openDir(t, dir, nil)
	for range 3 {
		set(t, db, "k", "v")
		require.NoError(t, db.Flush(t.Context()))
	}
	require.NoError(t, db.Checkpoint(t.Context(), other))
	require.NoError(t, db.Close())
	tables, err := filepath.Glob(filepath.Join(other, "*.sst"))
	require.NoError(t, err)
	require.NoError(t, os.Remove(tables[len(tables)-1]))
	swapped := 0
	for n := range 100 {
		asked := 0
		var before map[string]string
		ctx := interposedContext{t.Context(), func() {
			if asked++; asked == n+2 { // after the directory was opened
				require.NoError(t, os.Rename(dir, away))
				require.NoError(t, os.Rename(other, dir))
				before = readDir(t, dir)
			}
		}}
		err := Verify(ctx, dir, io.Discard)
		require.NotErrorIs(t, err, ErrCorruption)
		if before == nil {
			require.NoError(t, err)
			break
		}
		if err != nil { // else it was at its end
			swapped++
			require.ErrorIs(t, err, ErrDirectoryMoved)
		}
		require.Equal(t, before, readDir(t, dir))
		require.NoError(t, os.Rename(dir, other))
		require.NoError(t, os.Rename(away, dir))
	}
	require.Greater(t, swapped, 3)
}

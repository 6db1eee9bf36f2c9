package directories

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// storedOptions returns what a store was last opened with.
func storedOptions(t testing.TB, fsys vfs.FS, dir string) *kv.Options {
	t.Helper()
	stored, err := manifest.Options(fsys, dir)
	require.NoError(t, err)
	require.Equal(t, manifest.FormatVersion, stored.Format)
	require.NotEmpty(t, stored.Release)
	o, err := kv.ParseOptions(stored.Text)
	require.NoError(t, err)
	return o
}

// reopen opens a store and closes it.
func reopen(t testing.TB, dir string, o *kv.Options) {
	t.Helper()
	db, err := kv.Open(dir, o)
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

func TestAStoreKnowsWhatItWasLastOpenedWith(t *testing.T) {
	dir := t.TempDir()
	given := stores.TinyOptions()
	given.Merger = kv.Int64Add
	reopen(t, dir, given)
	require.Equal(t, given, storedOptions(t, vfs.OS, dir))
	text, err := os.ReadFile(filepath.Join(dir, manifest.OptionsName))
	require.NoError(t, err)
	require.Contains(t, string(text), "\nMemtableSize = 64KiB\n")
	require.Contains(t, string(text), "\n# MaxMemtables = 3\nBlockSize", "defaults are there as comments")
	back, err := kv.ParseOptions(string(text))
	require.NoError(t, err, "the file is a text of options as it is")
	require.Equal(t, given, back)

	reopen(t, dir, back)
	reopen(t, dir, nil)
	require.Equal(t, &kv.Options{}, storedOptions(t, vfs.OS, dir))
	reopen(t, dir, given)
	before, err := os.ReadFile(filepath.Join(dir, manifest.OptionsName))
	require.NoError(t, err)
	reopen(t, dir, &kv.Options{ReadOnly: true, CacheSize: -1})
	view := stores.OpenView(t, dir, &kv.Options{CacheSize: -1})
	require.NoError(t, view.Refresh(t.Context()))
	after, err := os.ReadFile(filepath.Join(dir, manifest.OptionsName))
	require.NoError(t, err)
	require.Equal(t, before, after, "readers write nothing")
}

// Whatever is wrong with the file, the store opens, for reading too, and the next writer puts it right.
func TestOpenDoesWithoutTheOptionsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, manifest.OptionsName)
	reopen(t, dir, stores.TinyOptions())
	good, err := os.ReadFile(name)
	require.NoError(t, err)
	newer := "# siftkv options=9 format=9 release=v9\n"
	newer += fmt.Sprintf("# crc=%08x\n", base.Checksum(0, 0, []byte(newer)))
	for what, spoil := range map[string]func() error{
		"missing":     func() error { return os.Remove(name) },
		"empty":       func() error { return os.WriteFile(name, nil, 0o600) },
		"cut off":     func() error { return os.WriteFile(name, good[:len(good)/2], 0o600) },
		"another's":   func() error { return os.WriteFile(name, []byte("-Xmx4g\n"), 0o600) },
		"newer":       func() error { return os.WriteFile(name, []byte(newer), 0o600) },
		"read-only":   func() error { return os.Chmod(name, 0o400) },
		"not allowed": func() error { return os.Chmod(name, 0) },
		"large":       func() error { return os.WriteFile(name, make([]byte, 1<<20), 0o600) },
		"a link": func() error {
			return errors.Join(os.Remove(name), os.Symlink(filepath.Join(t.TempDir(), "nowhere"), name))
		},
		"half-written": func() error { return os.WriteFile(name+vfs.TempSuffix, good[:9], 0o600) },
	} {
		require.NoError(t, spoil(), what)
		db, err := kv.Open(dir, &kv.Options{ReadOnly: true})
		require.NoError(t, err, what)
		require.NoError(t, db.Close())
		reopen(t, dir, stores.TinyOptions())
		require.Equal(t, stores.TinyOptions(), storedOptions(t, vfs.OS, dir), what)
		_, err = os.Lstat(name + vfs.TempSuffix)
		require.ErrorIs(t, err, fs.ErrNotExist, what)
	}
	require.NoError(t, os.Remove(name))
	require.NoError(t, os.Mkdir(name, 0o700))
	reopen(t, dir, stores.TinyOptions())
	_, err = os.Lstat(name + vfs.TempSuffix)
	require.ErrorIs(t, err, fs.ErrNotExist, "it could not be renamed, and is not left behind")
}

// What a crash left of a file is removed before the file is written, not beside that.
func TestAHalfWrittenFileIsRemovedBeforeItsNameIsUsed(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	temp := filepath.Join("db", manifest.OptionsName+vfs.TempSuffix)
	reopen(t, "db", stores.With(harness.Harness{FS: mem}, &kv.Options{}))
	f, err := mem.Create(temp)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	slow := &lateRenameFS{FS: mem}
	reopen(t, "db", stores.With(harness.Harness{FS: slow}, &kv.Options{MaxMemtables: 5}))
	require.EqualValues(t, 1, slow.removed.Load())
	require.Equal(t, &kv.Options{MaxMemtables: 5}, storedOptions(t, mem, "db"))
}

// A lateRenameFS renames the options file when one of its temporary name has been removed.
type lateRenameFS struct {
	vfs.FS
	removed atomic.Int32
}

func (f *lateRenameFS) Remove(name string) error {
	err := f.FS.Remove(name)
	if filepath.Base(name) == manifest.OptionsName+vfs.TempSuffix {
		f.removed.Add(1)
	}
	return err
}

func (f *lateRenameFS) Rename(from, to string) error {
	if filepath.Base(to) == manifest.OptionsName {
		storetest.Until(func() bool { return f.removed.Load() > 0 })
	}
	return f.FS.Rename(from, to)
}

// An optionsFS fails calls for the options file, and counts what is done to it.
type optionsFS struct {
	vfs.FS
	fail  string // the call that fails
	calls map[string]int
}

func (f *optionsFS) call(op, name string) error {
	if !strings.HasPrefix(filepath.Base(name), manifest.OptionsName) {
		return nil
	}
	f.calls[op]++
	if op == f.fail {
		return &fs.PathError{Op: op, Path: name, Err: syscall.EIO}
	}
	return nil
}

func (f *optionsFS) Open(name string) (vfs.ReadFile, error) {
	if err := f.call("open", name); err != nil {
		return nil, err
	}
	return f.FS.Open(name)
}

func (f *optionsFS) Create(name string) (vfs.WriteFile, error) {
	if err := f.call("create", name); err != nil {
		return nil, err
	}
	w, err := f.FS.Create(name)
	return optionsFile{w, f, name}, err
}

func (f *optionsFS) Rename(from, to string) error {
	if err := f.call("rename", to); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

type optionsFile struct {
	vfs.WriteFile
	fs   *optionsFS
	name string
}

func (w optionsFile) Write(p []byte) (int, error) {
	if err := w.fs.call("write", w.name); err != nil {
		return 0, err
	}
	return w.WriteFile.Write(p)
}

func (w optionsFile) Sync() error {
	if err := w.fs.call("sync", w.name); err != nil {
		return err
	}
	return w.WriteFile.Sync()
}

// Nothing that fails there keeps a store from being opened, nor a checkpoint from being made.
func TestOpenDoesNotFailForTheOptionsFile(t *testing.T) {
	for _, op := range []string{"open", "create", "write", "sync", "rename"} {
		fsys := &optionsFS{FS: vfs.NewMem(), fail: op, calls: map[string]int{}}
		o := stores.TinyOptions()
		harness.Of(o).FS = fsys
		for range 2 {
			db, err := kv.Open("db", o)
			require.NoError(t, err, op)
			require.NoError(t, db.Set([]byte("a"), []byte("1"), nil))
			require.NoError(t, db.Close())
		}
		db, err := kv.Open("db", o)
		require.NoError(t, err, op)
		require.NoError(t, db.Checkpoint(t.Context(), "copy"), op)
		require.NoError(t, db.Close())
		require.Positive(t, fsys.calls[op])
		for _, dir := range []string{"db", "copy"} {
			names, err := fsys.List(dir)
			require.NoError(t, err)
			require.NotContains(t, names, manifest.OptionsName+vfs.TempSuffix, op)
			db, err := kv.Open(dir, stores.With(harness.Harness{FS: fsys}, &kv.Options{ReadOnly: true}))
			require.NoError(t, err)
			storetest.RequireContents(t, storetest.Model{"a": "1"}, db)
			require.NoError(t, db.Close())
		}
	}
}

// A store that is opened as before reads its options file, and writes and syncs nothing for it.
func TestTheOptionsFileIsWrittenIfItChanges(t *testing.T) {
	fsys := &optionsFS{FS: vfs.NewMem(), calls: map[string]int{}}
	o := stores.TinyOptions()
	harness.Of(o).FS = fsys
	for range 5 {
		db, err := kv.Open("db", o)
		require.NoError(t, err)
		stores.ChangeAtRandom(t, db, storetest.Model{}, rand.New(rand.NewPCG(1, 1)), 1)
		require.NoError(t, db.Flush(t.Context()))
		require.NoError(t, db.Close())
	}
	require.Equal(t, map[string]int{"open": 5, "create": 1, "write": 1, "sync": 1, "rename": 1}, fsys.calls)
}

// A checkpoint says what its store was opened with; a restored store does not before it is opened; one in an
// object store never does.
func TestCopiesOfAStoreAndItsOptions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := stores.OpenWriter(t, filepath.Join(dir, "db"), stores.TinyOptions())
	require.NoError(t, db.Set([]byte("a"), nil, nil))
	require.NoError(t, db.Checkpoint(t.Context(), filepath.Join(dir, "checkpoint")))
	require.Equal(t, stores.TinyOptions(), storedOptions(t, vfs.OS, filepath.Join(dir, "checkpoint")))
	reopen(t, filepath.Join(dir, "checkpoint"), nil)

	stream, _ := stores.BackUp(t, db, kv.BackupMark{})
	restored := filepath.Join(dir, "restored")
	require.NoError(t, kv.Restore(t.Context(), strings.NewReader(string(stream)), restored, nil))
	_, err := manifest.Options(vfs.OS, restored)
	require.ErrorIs(t, err, fs.ErrNotExist)

	s := objstore.NewMem()
	o := &kv.Options{Objects: &objects.Config{Store: s, LocalLog: true}, MaxMemtables: 5}
	far, err := kv.Open(filepath.Join(dir, "local"), o)
	require.NoError(t, err)
	require.NoError(t, far.Set([]byte("a"), nil, nil))
	require.NoError(t, far.Checkpoint(t.Context(), filepath.Join(dir, "near")))
	require.NoError(t, far.Close())
	_, err = os.Stat(filepath.Join(dir, "local", manifest.OptionsName))
	require.ErrorIs(t, err, fs.ErrNotExist)
	for _, key := range storetest.KeysOf(t, s) {
		require.NotContains(t, key, manifest.OptionsName)
	}
	require.Equal(t, &kv.Options{MaxMemtables: 5}, storedOptions(t, vfs.OS, filepath.Join(dir, "near")))
}

// Programs that tell stores apart by the names of files, as geth does, do not take a store for one of Pebble or
// RocksDB.
func TestNoFileIsNamedLikeOneOfPebble(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := stores.OpenDir(t, dir, nil)
	stores.Set(t, db, "k", "1")
	require.NoError(t, errors.Join(db.Flush(t.Context()), db.Close()))
	require.FileExists(t, filepath.Join(dir, "SIFTKV-OPTIONS"))
	for _, pattern := range []string{"OPTIONS*", "marker.*", "IDENTITY", "*.log", "*.ldb"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		require.NoError(t, err)
		require.Empty(t, found)
	}
}

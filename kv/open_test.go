package kv

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
)

func TestAForeignDirectoryIsRefusedAndUntouched(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"a text":             {"notes.txt": "mine"},
		"a name like a lock": {"LOCK.txt": "", "LOCK": "12"},
		"photographs":        {"MANIFEST-1": "x", "7.sst": "y"},
		"LevelDB": {"CURRENT": "MANIFEST-000004\n", "MANIFEST-000004": "\x56\xf9", "000003.log": "",
			"LOCK": "theirs", "LOG": "x"},
		"Pebble": {"CURRENT": "", "000002.log": "", "LOCK": "", "marker.manifest.000001.MANIFEST-000001": "",
			"MANIFEST-000001": "\x00", "OPTIONS-000003": "[Version]"},
		"Pebble without CURRENT": {"000004.sst": "\xf7\xcf\xf4\x85\xb7\x41\xe2\x88", "LOCK": "",
			"MANIFEST-000001": "\x00", "marker.manifest.000001.MANIFEST-000001": ""},
		"Badger": {"000001.sst": "no footer of ours", "000001.vlog": "x", "00001.mem": "x", "DISCARD": "",
			"KEYREGISTRY": "Hello Badger", "LOCK": "4711", "MANIFEST": "Bdgr\x00\x01"},
		"Badger of tables alone": {"000001.sst": "no footer of ours"},
		"a log and a CURRENT":    {"CURRENT": "theirs", "000001.wal": "theirs"},
		"options alone":          {manifest.OptionsName: "theirs"},
	} {
		dir := filepath.Join(t.TempDir(), "theirs")
		writeDir(t, dir, files)
		before := readDir(t, dir)
		for _, o := range []*Options{nil, {ReadOnly: true}} {
			_, err := Open(dir, o)
			require.ErrorIs(t, err, ErrForeignDirectory, name)
			require.NotErrorIs(t, err, ErrCorruption, name)
			require.ErrorContains(t, err, dir)
		}
		require.Equal(t, before, readDir(t, dir), name)
	}
}

func TestANewerFormatIsRefused(t *testing.T) {
	dir := t.TempDir()
	db := openDir(t, dir, nil)
	set(t, db, "a", "1")
	require.NoError(t, db.Close())
	line, err := os.ReadFile(filepath.Join(dir, manifest.CurrentName))
	require.NoError(t, err)
	newer := strings.Replace(string(line), "format=1 ", "format=2 sharding=yes ", 1)
	require.NotEqual(t, string(line), newer)
	newer, _, _ = strings.Cut(newer, " crc=")
	require.NoError(t, os.WriteFile(filepath.Join(dir, manifest.CurrentName), base.SealLine(newer), 0o600))
	before := readDir(t, dir)
	for _, o := range []*Options{nil, {ReadOnly: true}} {
		_, err = Open(dir, o)
		require.ErrorIs(t, err, ErrNewerFormat)
		require.NotErrorIs(t, err, ErrCorruption)
		require.ErrorContains(t, err, filepath.Join(dir, manifest.CurrentName))
	}
	require.Equal(t, before, readDir(t, dir))
}

func TestReadOnlyChangesNothing(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	_, err := Open(missing, &Options{ReadOnly: true})
	require.ErrorIs(t, err, ErrNotExist)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.EqualError(t, err, "siftkv: there is no store in "+missing+", and a read-only open does not create one")
	require.NoDirExists(t, missing)
	empty := t.TempDir()
	_, err = Open(empty, &Options{ReadOnly: true})
	require.ErrorIs(t, err, ErrNotExist)
	require.Empty(t, readDir(t, empty))

	dir := t.TempDir()
	db := openDir(t, dir, nil)
	set(t, db, "in a table", "1")
	require.NoError(t, db.Flush(t.Context()))
	set(t, db, "in the log", "2")
	require.NoError(t, db.Close())
	before := readDir(t, dir)

	a := openDir(t, dir, &Options{ReadOnly: true})
	b := openDir(t, dir, &Options{ReadOnly: true})
	_, err = Open(dir, nil)
	require.ErrorIs(t, err, ErrLocked, "a writer is kept out by readers")
	for _, db := range []*DB{a, b} {
		requireContents(t, storetest.Model{"in a table": "1", "in the log": "2"}, db)
		k := []byte("k")
		batch := db.NewBatch()
		require.NoError(t, batch.Set(k, nil))
		for name, err := range map[string]error{
			"Set": db.Set(k, k, nil), "Delete": db.Delete(k, Async), "DeleteRange": db.DeleteRange(nil, nil, nil),
			"Commit": batch.Commit(NoSync), "Flush": db.Flush(t.Context()), "Compact": db.Compact(t.Context(),
				nil, nil),
			"Compact of nothing": db.Compact(t.Context(), []byte("b"), []byte("a")),
		} {
			require.ErrorIs(t, err, ErrReadOnly, name)
		}
		require.NoError(t, db.Close())
	}
	require.Equal(t, before, readDir(t, dir))
}

func TestOneProcessLocksOnce(t *testing.T) {
	dir := t.TempDir()
	db := openDir(t, dir, nil)
	for _, o := range []*Options{nil, {ReadOnly: true}} {
		_, err := Open(dir, o)
		require.ErrorIs(t, err, ErrLocked)
		require.ErrorContains(t, err, filepath.Join(dir, manifest.LockName))
		require.ErrorContains(t, err, fmt.Sprintf("this process (%d)", os.Getpid()))
	}
	set(t, db, "a", "1")
	require.NoError(t, db.Close())
	require.NoError(t, openDir(t, dir, nil).Close())
}

func TestAnUnfinishedCreationIsFinished(t *testing.T) {
	t.Parallel()
	// What a crash leaves that comes before CURRENT has its name.
	whole := t.TempDir()
	require.NoError(t, openDir(t, whole, nil).Close())
	first, err := os.ReadFile(filepath.Join(whole, "MANIFEST-000001"))
	require.NoError(t, err)
	for name, files := range map[string]map[string]string{
		"lock":             {"LOCK": "123\n"},
		"manifest":         {"LOCK": "", "MANIFEST-000001": string(first)},
		"half a manifest":  {"LOCK": "", "MANIFEST-000001": string(first[:40])},
		"an empty CURRENT": {"LOCK": "", "MANIFEST-000001": string(first), "CURRENT.tmp": ""},
	} {
		dir := filepath.Join(t.TempDir(), "store")
		writeDir(t, dir, files)
		db, err := Open(dir, nil)
		require.NoError(t, err, name)
		set(t, db, "a", "1")
		require.NoError(t, db.Close())
		db = openDir(t, dir, nil)
		requireContents(t, storetest.Model{"a": "1"}, db)
		require.NoError(t, db.Close())
		require.NoFileExists(t, filepath.Join(dir, "CURRENT.tmp"))
	}
}

// lockHook runs a function when a store is about to be locked.
type lockHook struct {
	vfs.FS
	before func()
}

func (h *lockHook) Lock(name string, mode vfs.LockMode) (io.Closer, error) {
	if f := h.before; f != nil {
		h.before = nil
		f()
	}
	return h.FS.Lock(name, mode)
}

// TestAStoreThatIsCreatedMeanwhileIsNotOverwritten lets another process create the
// store between the look into the directory and the lock.
func TestAStoreThatIsCreatedMeanwhileIsNotOverwritten(t *testing.T) {
	mem := vfs.NewMem()
	hook := &lockHook{FS: mem, before: func() {
		db, err := Open("db", &Options{harness: harness.Harness{FS: mem}})
		require.NoError(t, err)
		require.NoError(t, db.Set([]byte("k"), []byte("v"), Sync))
		require.NoError(t, db.Close())
	}}
	db, err := Open("db", &Options{harness: harness.Harness{FS: hook}})
	require.NoError(t, err)
	requireContents(t, storetest.Model{"k": "v"}, db)
	require.NoError(t, db.Close())
}

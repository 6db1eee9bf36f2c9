//go:build unix

package directories

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// umask is that of the process. To ask for it is to change it: no test may run meanwhile.
var umask = func() fs.FileMode {
	m := syscall.Umask(0)
	syscall.Umask(m)
	return fs.FileMode(m)
}()

// requireModes checks the modes of all that is in a directory, and of itself, and returns the kinds of files in it.
func requireModes(t *testing.T, dir string, file, directory fs.FileMode) map[manifest.FileKind]int {
	t.Helper()
	kinds := map[manifest.FileKind]int{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := e.Info()
		require.NoError(t, err)
		want := file
		if e.IsDir() {
			want = directory
		}
		require.Equal(t, want&^umask, info.Mode().Perm(), name)
		kind, _ := manifest.ParseFileName(e.Name())
		kinds[kind]++
		return nil
	})
	require.NoError(t, err)
	return kinds
}

var fileModes = map[string]struct{ given, file, dir fs.FileMode }{
	"by default": {0, 0o600, 0o700}, "for the group": {0o640, 0o640, 0o750}, "for all": {0o644, 0o644, 0o755},
	"written by the group": {0o660, 0o660, 0o770}, "odd": {0o602, 0o602, 0o702},
}

// Every file and directory that a store makes has the mode, whatever makes it.
func TestFileMode(t *testing.T) {
	t.Parallel()
	for name, c := range fileModes {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := stores.TinyOptions()
			o.FileMode, harness.Of(o).MaxManifestSize = c.given, 2000
			store := filepath.Join(dir, "new", "store")
			db := stores.OpenWriter(t, store, o)
			view, err := kv.OpenReadOnly(store, o)
			require.NoError(t, err)
			want := storetest.Model{}
			rng := rand.New(rand.NewPCG(1, 1))
			for round := range 10 {
				stores.ChangeAtRandom(t, db, want, rng, round)
				require.NoError(t, view.Refresh(t.Context()))
			}
			require.NoError(t, db.Compact(t.Context(), nil, nil))
			file := storetest.IngestFile(t, vfs.OS, filepath.Join(t.TempDir(), "f"), nil, "zz=1")
			require.NoError(t, db.Ingest(t.Context(), []string{file}, nil))
			require.NoError(t, db.Checkpoint(t.Context(), filepath.Join(dir, "new", "copies", "checkpoint")))
			stream, _ := stores.BackUp(t, db, kv.BackupMark{})
			require.NoError(t, kv.Restore(t.Context(), strings.NewReader(string(stream)),
				filepath.Join(dir, "new", "restored"), o))
			harness.Settle(db) // no file is removed during the walk
			kinds := requireModes(t, filepath.Join(dir, "new"), c.file, c.dir)
			for _, kind := range []manifest.FileKind{manifest.FileTable, manifest.FileWAL, manifest.FileManifest,
				manifest.FileCurrent, manifest.FileLock, manifest.FileReader, manifest.FileRestore,
				manifest.FileOptions} {
				require.Positive(t, kinds[kind], "%d", kind)
			}
			require.NoError(t, view.Close())
		})
	}
}

// The local files of a store in an object store have the mode too: its log, its cache and its checkpoints.
func TestFileModeBesideAnObjectStore(t *testing.T) {
	t.Parallel()
	for name, c := range fileModes {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "new")
			o := stores.TinyOptions()
			o.FileMode = c.given
			o.Objects = &objects.Config{Store: objstore.NewMem(), LocalLog: true, CacheSize: 8 << 20}
			db := stores.OpenWriter(t, filepath.Join(dir, "local"), o)
			want := storetest.Model{}
			for round := range 5 {
				stores.ChangeAtRandom(t, db, want, rand.New(rand.NewPCG(1, 1)), round)
			}
			require.NoError(t, db.Flush(t.Context()))
			storetest.RequireContents(t, want, db)
			require.NoError(t, db.Checkpoint(t.Context(), filepath.Join(dir, "checkpoint")))
			cached, ok := harness.ObjectDir(db).(interface{ FlushCache() })
			require.True(t, ok)
			cached.FlushCache()
			require.NoError(t, db.Set([]byte("a"), nil, nil))
			harness.Settle(db)
			kinds := requireModes(t, dir, c.file, c.dir)
			require.Positive(t, kinds[manifest.FileWAL])
			require.Greater(t, kinds[manifest.FileUnknown], 3+2, "directories, the log's own files and the cache")
		})
	}
}

// What is there keeps its mode; what is new has that of the options.
func TestFilesKeepTheirModes(t *testing.T) {
	dir := t.TempDir()
	reopen(t, dir, &kv.Options{FileMode: 0o644})
	before := map[string]bool{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		before[e.Name()] = true
	}
	info, err := os.Stat(filepath.Join(dir, manifest.LockName))
	require.NoError(t, err)
	old := info.Mode().Perm()
	db := stores.OpenWriter(t, dir, nil)
	require.NoError(t, db.Set([]byte("a"), nil, nil))
	require.NoError(t, db.Flush(t.Context()))
	file := storetest.IngestFile(t, vfs.OSWithMode(0o604), filepath.Join(t.TempDir(), "f"), nil, "b=1")
	require.NoError(t, db.Ingest(t.Context(), []string{file}, &kv.IngestOptions{Link: true}))
	harness.Settle(db)
	entries, err = os.ReadDir(dir)
	require.NoError(t, err)
	linked := 0
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		switch {
		case e.Name() == manifest.LockName:
			require.Equal(t, old, info.Mode().Perm(), "the lock is the file that it was")
		case info.Mode().Perm() == 0o604&^umask && filepath.Ext(e.Name()) == ".sst":
			linked++
		case !before[e.Name()] || e.Name() == manifest.CurrentName:
			require.EqualValues(t, 0o600, info.Mode().Perm(), e.Name())
		}
	}
	require.Equal(t, 1, linked, "the ingested file is the one that was given")
}

// What a crash left of a file that was being replaced is not what takes its place: it may have another mode.
func TestWhatACrashLeftLendsNoMode(t *testing.T) {
	dir := t.TempDir()
	reopen(t, dir, nil)
	replaced := []string{manifest.CurrentName, manifest.OptionsName}
	for _, name := range replaced {
		left := filepath.Join(dir, name+vfs.TempSuffix)
		require.NoError(t, os.WriteFile(left, []byte("half"), 0o600))
		require.NoError(t, os.Chmod(left, 0o666)) //nolint:gosec // on purpose
	}
	reopen(t, dir, &kv.Options{MaxMemtables: 5})
	for _, name := range replaced {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.EqualValues(t, 0o600&^umask, info.Mode(), name)
	}
}

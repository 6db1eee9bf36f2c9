package repair

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// A fullFS has room for so many bytes, and no links.
type fullFS struct {
	vfs.FS
	room int
}

func (f *fullFS) Link(string, string) error { return syscall.EMLINK }

func (f *fullFS) Create(name string) (vfs.WriteFile, error) {
	w, err := f.FS.Create(name)
	return fullFile{w, f}, err
}

type fullFile struct {
	vfs.WriteFile
	fs *fullFS
}

func (f fullFile) Write(b []byte) (int, error) {
	n := min(len(b), f.fs.room)
	f.fs.room -= n
	if _, err := f.WriteFile.Write(b[:n]); err != nil || n == len(b) {
		return n, err
	}
	return n, syscall.ENOSPC
}

// damagedStore returns a store with a table to be salvaged, tables to be kept and a log
// to be replayed.
func damagedStore(t *testing.T) (dir string, h *history) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	h = store(t, dir, 6)
	rng := rand.New(rand.NewPCG(4, 4))
	damages["flipped"](t, filesOf(t, dir, manifest.FileTable)[0], rng)
	damages["flipped"](t, filesOf(t, dir, manifest.FileWAL)[0], rng)
	return dir, h
}

// A repair for which there is no room leaves nothing behind, neither in another
// directory nor in place, whatever byte was the first that had none.
func TestARepairWithoutRoomLeavesNothingBehind(t *testing.T) {
	scale.OneGoroutine(t, "one goroutine repairs")
	origin, h := damagedStore(t)
	for _, toOut := range []bool{true, false} {
		full := 0
		for room := 0; ; room += 997 {
			top := t.TempDir()
			dir := filepath.Join(top, "store")
			cloneDir(t, origin, dir)
			o := Options{fs: &fullFS{vfs.OS, room}}
			if toOut {
				o.Out = filepath.Join(top, "new", "out")
			}
			before := snapshotDir(t, dir)
			_, err := Run(t.Context(), dir, o)
			if err == nil {
				break
			}
			full++
			require.ErrorIs(t, err, syscall.ENOSPC)
			what := fmt.Sprintf("toOut: %v, room for %d bytes: %v", toOut, room, err)
			require.Equal(t, before, snapshotDir(t, dir), what)
			require.NoDirExists(t, filepath.Join(dir, LostDir), what)
			require.NoDirExists(t, filepath.Join(top, "new"), what)

			r, err := Run(t.Context(), dir, Options{Out: o.Out})
			require.NoError(t, err, what)
			if toOut {
				dir = o.Out
				require.NoFileExists(t, filepath.Join(dir, markName))
			}
			requireCovered(t, h, r, contents(t, dir), what)
		}
		require.Greater(t, full, 10)
	}
}

// A repair into another directory that was killed, at whatever change of the file
// system, can be run again. Its directory is no store before the repair is done.
func TestAKilledRepairIntoAnotherDirectoryCanBeRunAgain(t *testing.T) {
	scale.OneGoroutine(t, "one goroutine repairs")
	dir, h := damagedStore(t)
	before := snapshotDir(t, dir)
	killed, done := 0, 0
	for n := 0; done == 0; n++ {
		out := filepath.Join(t.TempDir(), "out")
		_, err := Run(t.Context(), dir, Options{Out: out, fs: &breakingFS{FS: vfs.OS, left: n}})
		what := fmt.Sprintf("after %d changes: %v", n, err)
		if err == nil {
			done++
		} else {
			require.ErrorIs(t, err, errBroken, what)
			killed++
		}
		_, atCurrent := os.Stat(filepath.Join(out, manifest.CurrentName))
		r, err := Run(t.Context(), dir, Options{Out: out})
		if atCurrent == nil { // it is somebody's store from then on
			require.ErrorContains(t, err, out)
		} else {
			require.NoError(t, err, what)
			require.NoFileExists(t, filepath.Join(out, markName), what)
			requireCovered(t, h, r, contents(t, out), what)
		}
		require.Equal(t, before, snapshotDir(t, dir), what)
	}
	require.Greater(t, killed, 8)
}

// What is in the directory and is not a repair's stays.
func TestARepairDoesNotWriteBesideOtherFiles(t *testing.T) {
	dir, _ := damagedStore(t)
	for _, files := range []map[string]string{
		{"notes.txt": ""},
		{"000001.sst": "of a store that has lost its CURRENT"},
		{"REPAIR": "somebody else's", "000001.sst": ""},
		{"REPAIR": markLine[:10], "000001.sst": ""},
		{"REPAIR": markLine, "notes.txt": ""},
		{"REPAIR": markLine, "CURRENT": "", "000001.sst": ""},
	} {
		out := t.TempDir()
		for name, data := range files {
			require.NoError(t, os.WriteFile(filepath.Join(out, name), []byte(data), 0o600))
		}
		_, err := Run(t.Context(), dir, Options{Out: out})
		require.ErrorContains(t, err, out)
		require.Equal(t, files, snapshotDir(t, out))
	}
	for _, text := range []string{"", markLine[:10], markLine} {
		out := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(out, markName), []byte(text), 0o600))
		_, err := Run(t.Context(), dir, Options{Out: out})
		require.NoError(t, err, "a repair was killed when it had just begun")
		require.NoError(t, kv.Verify(t.Context(), out, t.Output()))
	}
}

// Two repairs do not write to one directory.
func TestADirectoryThatIsRepairedIntoIsLocked(t *testing.T) {
	dir, _ := damagedStore(t)
	out := filepath.Join(t.TempDir(), "out")
	o := &outDir{fs: vfs.OS, dir: out}
	require.NoError(t, o.check())
	require.NoError(t, o.begin())
	_, err := Run(t.Context(), dir, Options{Out: out})
	require.ErrorIs(t, err, kv.ErrLocked)
	require.FileExists(t, filepath.Join(out, markName), "the first goes on")
	o.abort()
	require.NoDirExists(t, out)
	_, err = Run(t.Context(), dir, Options{Out: out})
	require.NoError(t, err)
}

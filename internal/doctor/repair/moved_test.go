//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package repair

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// A steppingFS calls a function before every call of a file system whose directories can be open.
type steppingFS struct {
	vfs.FS
	step func()
}

func (f *steppingFS) OpenDirectory(dir string) (vfs.FS, *vfs.Directory, error) {
	fsys, d, err := vfs.OpenDirectory(f.FS, dir)
	return &steppingFS{fsys, f.step}, d, err
}

func (f *steppingFS) Create(name string) (vfs.WriteFile, error) { f.step(); return f.FS.Create(name) }
func (f *steppingFS) Open(name string) (vfs.ReadFile, error)    { f.step(); return f.FS.Open(name) }
func (f *steppingFS) Remove(name string) error                  { f.step(); return f.FS.Remove(name) }
func (f *steppingFS) Rename(from, to string) error              { f.step(); return f.FS.Rename(from, to) }
func (f *steppingFS) Link(from, to string) error                { f.step(); return f.FS.Link(from, to) }
func (f *steppingFS) List(dir string) ([]string, error)         { f.step(); return f.FS.List(dir) }
func (f *steppingFS) SyncDir(dir string) error                  { f.step(); return f.FS.SyncDir(dir) }

// A swap puts another store in the place of a directory.
type swap struct {
	t                *testing.T
	dir, other, away string
	before           map[string]string // of the other store
	done             bool
}

// newSwap makes another store.
func newSwap(t *testing.T, top, dir string) *swap {
	t.Helper()
	s := &swap{t: t, dir: dir, other: filepath.Join(top, "other"), away: filepath.Join(top, "away")}
	db, err := kv.Open(s.other+".origin", nil)
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("other"), []byte("value"), nil))
	require.NoError(t, db.Checkpoint(t.Context(), s.other)) // it has names that the damaged store has
	require.NoError(t, db.Close())
	s.before = snapshotDir(t, s.other)
	return s
}

// now swaps the directories, once the first is there.
func (s *swap) now() {
	if _, err := os.Stat(s.dir); s.done || err != nil {
		return
	}
	s.done = true
	require.NoError(s.t, os.Rename(s.dir, s.away))
	require.NoError(s.t, os.Rename(s.other, s.dir))
}

// undo requires that the other store is as it was, and swaps them back.
func (s *swap) undo(what string) {
	if !s.done {
		return
	}
	require.Equal(s.t, s.before, snapshotDir(s.t, s.dir), what)
	require.NoError(s.t, os.Rename(s.dir, s.other))
	require.NoError(s.t, os.Rename(s.away, s.dir))
}

// A directory that is replaced while it is repaired, or repaired into, at whatever call of the file system: the other
// store stays as it is, and the repair fails before it puts anything in force, or is whole where it is now.
func TestADirectoryIsReplacedDuringARepair(t *testing.T) {
	t.Parallel()
	origin, h := damagedStore(t)
	for _, toOut := range []bool{false, true} {
		failed, done := 0, 0
		stride := min(scale.Stride(5, 1), 7) // a repair is not much longer
		for n := 0; ; n += stride {
			top := t.TempDir()
			dir := filepath.Join(top, "store")
			cloneDir(t, origin, dir)
			o, target := Options{}, dir
			if toOut {
				o.Out = filepath.Join(top, "out")
				target = o.Out
			}
			s := newSwap(t, top, target)
			calls := 0
			o.fs = &steppingFS{vfs.OS, func() {
				if calls++; calls >= n {
					s.now()
				}
			}}
			before := snapshotDir(t, dir)
			_, err := Run(t.Context(), dir, o)
			what := fmt.Sprintf("toOut: %v, call %d: %v", toOut, n, err)
			s.undo(what)
			if toOut {
				require.Equal(t, before, snapshotDir(t, dir), what)
			}
			if !s.done {
				require.NoError(t, err)
				break
			}
			if err != nil {
				failed++
				if !toOut || !strings.Contains(err.Error(), target+" is not empty") { // it had not been opened
					require.ErrorIs(t, err, vfs.ErrMoved, what)
				}
				for name, data := range before {
					requireSomewhere(t, dir, name, data, what)
				}
				r, err := Run(t.Context(), dir, Options{Out: o.Out})
				require.NoError(t, err, what)
				requireCovered(t, h, r, contents(t, target), what)
				continue
			}
			done++
			require.NoError(t, kv.Verify(t.Context(), target, t.Output()), what)
		}
		require.Positive(t, failed, "toOut: %v", toOut)
		require.Positive(t, done, "toOut: %v", toOut)
	}
}

// The repaired store is verified where it is, and not what has its name by then.
func TestADirectoryIsReplacedAfterARepair(t *testing.T) {
	t.Parallel()
	for _, toOut := range []bool{false, true} {
		dir, _ := damagedStore(t)
		o, target := Options{}, dir
		if toOut {
			o.Out = filepath.Join(filepath.Dir(dir), "out")
			target = o.Out
		}
		s := newSwap(t, filepath.Dir(dir), target)
		damaged, err := os.ReadFile(filepath.Join(dir, manifest.CurrentName))
		require.NoError(t, err)
		ctx := interposedContext{t.Context(), func() {
			current, err := os.ReadFile(filepath.Join(target, manifest.CurrentName))
			if err == nil && !bytes.Equal(current, damaged) { // the repaired store is in force
				s.now()
			}
		}}
		_, err = Run(ctx, dir, o)
		require.True(t, s.done)
		require.ErrorIs(t, err, vfs.ErrMoved)
		require.ErrorContains(t, err, target)
		s.undo("")
		require.NoError(t, kv.Verify(t.Context(), target, t.Output()))
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

// A report about a store that has been moved says so: of a dry run, and of a repair into another directory.
func TestTheDamagedStoreIsReplaced(t *testing.T) {
	t.Parallel()
	for _, toOut := range []bool{false, true} {
		dir, h := damagedStore(t)
		out := filepath.Join(filepath.Dir(dir), "out")
		s := newSwap(t, filepath.Dir(dir), dir)
		o := Options{DryRun: true}
		if toOut {
			o = Options{Out: out}
		}
		want, err := Run(t.Context(), dir, Options{DryRun: true})
		require.NoError(t, err)
		o.fs = &steppingFS{vfs.OS, func() {
			if _, err := os.Stat(filepath.Join(out, markName)); err == nil || !toOut {
				s.now()
			}
		}}
		r, err := Run(t.Context(), dir, o)
		require.NoError(t, err)
		require.True(t, s.done)
		require.Equal(t, want.Lost, r.Lost)
		require.Contains(t, r.Notes[len(r.Notes)-1], "moved")
		require.Contains(t, r.Notes[len(r.Notes)-1], "opened as "+dir)
		if toOut {
			requireCovered(t, h, r, contents(t, out), "")
		}
		s.undo("")
	}
}

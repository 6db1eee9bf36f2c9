package repair

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/vfs"
)

var errBroken = errors.New("the disk is broken")

// A breakingFS fails every change of names from one on.
type breakingFS struct {
	vfs.FS
	left int
}

func (b *breakingFS) change() error {
	if b.left--; b.left < 0 {
		return errBroken
	}
	return nil
}

func (b *breakingFS) Create(name string) (vfs.WriteFile, error) {
	if err := b.change(); err != nil {
		return nil, err
	}
	return b.FS.Create(name)
}

func (b *breakingFS) Rename(from, to string) error {
	return errors.Join(b.change(), b.whileWhole(func() error { return b.FS.Rename(from, to) }))
}

func (b *breakingFS) Link(from, to string) error {
	return errors.Join(b.change(), b.whileWhole(func() error { return b.FS.Link(from, to) }))
}

func (b *breakingFS) Remove(name string) error {
	return errors.Join(b.change(), b.whileWhole(func() error { return b.FS.Remove(name) }))
}

func (b *breakingFS) SyncDir(dir string) error {
	return errors.Join(b.change(), b.whileWhole(func() error { return b.FS.SyncDir(dir) }))
}

func (b *breakingFS) whileWhole(f func() error) error {
	if b.left < 0 {
		return nil
	}
	return f()
}

// A repair that stops at any change it makes can be run again, and nothing of the
// input is gone.
func TestAnInterruptedRepairCanBeRunAgain(t *testing.T) {
	t.Parallel()
	cases := map[string][]manifest.FileKind{
		"with a manifest":               {manifest.FileTable, manifest.FileWAL},
		"without a manifest":            {manifest.FileTable, manifest.FileManifest, manifest.FileWAL},
		"blob files":                    {manifest.FileTable, manifest.FileBlob},
		"blob files without a manifest": {manifest.FileBlob, manifest.FileManifest},
	}
	for first, name := range slices.Sorted(maps.Keys(cases)) {
		kinds := cases[name]
		origin := filepath.Join(t.TempDir(), "origin")
		kind := store
		if slices.Contains(kinds, manifest.FileBlob) {
			kind = separatedStore
		}
		h := kind(t, origin, 6)
		stride := scale.Stride(4, 1)
		n := first % stride // each case has other changes
		for ; ; n += stride {
			require.Less(t, n, 200)
			dir := filepath.Join(t.TempDir(), "store")
			cloneDir(t, origin, dir)
			rng := rand.New(rand.NewPCG(4, 4))
			for _, kind := range kinds {
				damages["flipped"](t, filesOf(t, dir, kind)[0], rng)
			}
			before := snapshotDir(t, dir)
			_, failed := Run(t.Context(), dir, Options{fs: &breakingFS{FS: vfs.OS, left: n}})
			what := fmt.Sprintf("%s, after %d changes: %v", name, n, failed)
			for file, data := range before {
				requireSomewhere(t, dir, file, data, what)
			}
			r, err := Run(t.Context(), dir, Options{})
			require.NoError(t, err, what)
			for file, data := range before {
				requireSomewhere(t, dir, file, data, what)
			}
			if got := contents(t, dir); r.Needed {
				requireCovered(t, h, r, got, what)
			}
			if failed == nil {
				break
			}
			require.ErrorIs(t, failed, errBroken, what)
		}
		require.Greater(t, n, 10, name)
	}
}

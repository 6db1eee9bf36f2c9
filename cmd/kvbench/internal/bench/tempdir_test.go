package bench

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
)

// Directories of runs that are alive, and those that never had a lock, are left alone.
func TestATempDirStaysWhileItsRunIsAlive(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	foreign := filepath.Join(parent, tempPrefix+"results")
	require.NoError(t, os.Mkdir(foreign, 0o700))
	require.NoError(t, os.Symlink(foreign, foreign+"-2"+lockSuffix))
	first, removeFirst, err := TempDir(parent, "cells")
	require.NoError(t, err)
	second, removeSecond, err := TempDir(parent, "cells")
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	require.DirExists(t, first)
	require.NoError(t, removeFirst())
	require.NoError(t, removeSecond())
	left, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Len(t, left, 2, "the directory and the link of another program")
}

// Runs that begin and end at the same time find each other's lock files at every moment.
func TestTempDirsAtOnce(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range scale.Count(10, 50) {
				dir, remove, err := TempDir(parent, "cells")
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)
				}
				if err == nil {
					err = remove()
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	_, remove, err := TempDir(parent, "cells")
	require.NoError(t, err)
	require.NoError(t, remove())
	left, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Empty(t, left)
}

package repair

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/kv"
)

// A store that somebody reads beside its writer is not repaired under the reader's
// hands. What dead readers have left behind does not matter.
func TestReadersAreInTheWayOfARepairInPlace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	h := store(t, dir, 6)
	dead := filepath.Join(dir, "READER-99999-1")
	require.NoError(t, os.WriteFile(dead, nil, 0o600))
	reader, err := kv.OpenReadOnly(dir, nil)
	require.NoError(t, err)
	damages["flipped"](t, filesOf(t, dir, manifest.FileTable)[0], rand.New(rand.NewPCG(4, 4)))
	before := snapshotDir(t, dir)

	_, err = Run(t.Context(), dir, Options{})
	require.ErrorIs(t, err, kv.ErrLocked)
	require.ErrorContains(t, err, ": 1; end them")
	delete(before, filepath.Base(dead))
	require.Equal(t, before, snapshotDir(t, dir), "it changed nothing")
	dry, err := Run(t.Context(), dir, Options{DryRun: true})
	require.NoError(t, err)
	toOut, err := Run(t.Context(), dir, Options{Out: filepath.Join(t.TempDir(), "out")})
	require.NoError(t, err)
	require.Equal(t, dry.Lost, toOut.Lost)

	require.NoError(t, reader.Close())
	require.NoError(t, os.WriteFile(dead, nil, 0o600))
	r, err := Run(t.Context(), dir, Options{})
	require.NoError(t, err)
	requireCovered(t, h, r, contents(t, dir), "without readers")
	for _, f := range r.Files {
		require.NotContains(t, f.Name, "READER")
	}
}

package measure

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDropForgetsWhatWasWritten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sub", "file")
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o755))
	data := bytes.Repeat([]byte("x"), 1<<20)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	state, err := DropCaches(dir)
	require.NoError(t, err)
	require.NotEqual(t, state.Dropped, state.Impossible != "", "one or the other: %+v", state)
	if state.Left > 0 {
		require.Less(t, state.Left, int64(len(data)), "something went")
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
	_, err = DropCaches(filepath.Join(dir, "nothing"))
	require.Error(t, err)
}

func TestChillLeavesFilesAsTheyAre(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	data := bytes.Repeat([]byte("x"), 1<<20)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	require.NoError(t, os.Symlink("nothing", filepath.Join(dir, "link")))
	require.NoError(t, ChillCaches(dir))
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
	require.NoError(t, ChillCaches(filepath.Join(dir, "gone")), "a store may not be there yet")
}

package results

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWriteJSONReplacesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.json")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	require.NoError(t, WriteJSON(path, map[string]int{"a": 1}))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.JSONEq(t, `{"a": 1}`, string(data))
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing else is left")

	require.ErrorContains(t, WriteJSON(filepath.Join(t.TempDir(), "no", "out.json"), 1), "no such file")
	require.Error(t, WriteJSON(path, func() {}), "a function has no JSON")
}

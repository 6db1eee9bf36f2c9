package repair

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/kv"
)

// A log that has handles is replayed with its blob files, which no manifest lists.
func TestValuesOfALogThatLieApart(t *testing.T) {
	for _, kind := range []manifest.FileKind{manifest.FileCurrent, manifest.FileManifest} {
		from := filepath.Join(t.TempDir(), "open")
		db, err := kv.Open(from, nil)
		require.NoError(t, err)
		value := strings.Repeat("value", 20_000)
		require.NoError(t, db.SetReader([]byte("a"), int64(len(value)), strings.NewReader(value), kv.Sync))
		dir := filepath.Join(t.TempDir(), "store")
		copyDir(t, from, dir)
		require.NoError(t, db.Close())
		require.NoError(t, os.Remove(filesOf(t, dir, kind)[0]))
		r, err := Run(t.Context(), dir, Options{})
		require.NoError(t, err)
		require.Equal(t, map[string]string{"a": value}, contents(t, dir), "%+v", r)
	}
}

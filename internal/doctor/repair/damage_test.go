package repair

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
)

func copyDir(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, os.CopyFS(to, os.DirFS(from)))
}

// copyOpen copies an open store as soon as it has one log. That of what was flushed is removed in the background.
func copyOpen(t *testing.T, from, to string) {
	t.Helper()
	require.Eventually(t, func() bool {
		logs, err := filepath.Glob(filepath.Join(from, "*.wal"))
		return err == nil && len(logs) == 1
	}, time.Minute, time.Millisecond)
	copyDir(t, from, to)
}

// cloneDir copies a closed store. Tables and blob files are hard links; replace changes one without the original.
func cloneDir(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, os.Mkdir(to, 0o700))
	entries, err := os.ReadDir(from)
	require.NoError(t, err)
	for _, e := range entries {
		old, name := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		switch kind, _ := manifest.ParseFileName(e.Name()); {
		case e.IsDir():
			require.NoError(t, os.CopyFS(name, os.DirFS(old)))
		case kind == manifest.FileTable || kind == manifest.FileBlob:
			require.NoError(t, os.Link(old, name))
		default:
			data, err := os.ReadFile(old)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(name, data, 0o600))
		}
	}
}

// replace gives a file of a clone other bytes. The original keeps its own.
func replace(t *testing.T, name string, data []byte) {
	t.Helper()
	require.NoError(t, os.Remove(name))
	require.NoError(t, os.WriteFile(name, data, 0o600))
}

// filesOf returns the files of a kind, in order.
func filesOf(t *testing.T, dir string, kind manifest.FileKind) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if k, _ := manifest.ParseFileName(e.Name()); k == kind {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	return names
}

// damages are ways to harm a file.
var damages = map[string]func(t *testing.T, name string, rng *rand.Rand){
	"missing": func(t *testing.T, name string, _ *rand.Rand) { require.NoError(t, os.Remove(name)) },
	"flipped": func(t *testing.T, name string, rng *rand.Rand) {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
		replace(t, name, data)
	},
	"truncated": func(t *testing.T, name string, rng *rand.Rand) {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		replace(t, name, data[:rng.IntN(len(data))])
	},
	"overwritten": func(t *testing.T, name string, rng *rand.Rand) {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		from := rng.IntN(len(data))
		for i := from; i < min(from+1000, len(data)); i++ {
			data[i] = byte(rng.Uint32())
		}
		replace(t, name, data)
	},
	"emptied": func(t *testing.T, name string, _ *rand.Rand) { replace(t, name, nil) },
	"whole":   func(*testing.T, string, *rand.Rand) {},
}

package storetest

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

// A Settable is a model that files are taken into.
type Settable interface {
	Set(k, v string)
	Delete(k string)
	DeleteRange(lo, hi []byte)
}

// WriteIngestFile writes a sorted file with random values and deletes of ascending keys, and perhaps a range delete.
// It does to m what ingesting the file does.
func WriteIngestFile(t testing.TB, rng *rand.Rand, fsys vfs.FS, path string, filter filterpolicy.Policy,
	m Settable, keys []string) {
	t.Helper()
	f, err := fsys.Create(path)
	require.NoError(t, err)
	w := sstable.NewWriter(f, &sstable.WriterOptions{BlockSize: 64 + rng.IntN(500), Filter: filter})
	if len(keys) > 1 && rng.IntN(3) == 0 {
		lo, hi := keys[0], keys[len(keys)-1]
		require.NoError(t, w.DeleteRange([]byte(lo), []byte(hi)))
		m.DeleteRange([]byte(lo), []byte(hi))
	}
	for i, k := range keys {
		if i > 0 && k == keys[i-1] {
			continue
		}
		if rng.IntN(4) == 0 {
			require.NoError(t, w.Delete([]byte(k)))
			m.Delete(k)
			continue
		}
		v := RandomBytes(rng, rng.IntN(200))
		m.Set(k, string(v))
		require.NoError(t, w.Set([]byte(k), v))
	}
	_, err = w.Finish()
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

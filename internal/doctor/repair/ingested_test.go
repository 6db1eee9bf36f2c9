package repair

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// The entries of an ingested file have no sequence numbers of their own: salvaged or
// kept, they stay newer than what the store had, and older than what came later.
func TestIngestedFilesKeepTheirPlaceInHistory(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "store")
		db, err := kv.Open(dir, nil)
		require.NoError(t, err)
		for _, k := range []string{"a", "b", "c"} {
			require.NoError(t, db.Set([]byte(k), []byte("old"), nil))
		}
		path := filepath.Join(t.TempDir(), "file")
		f, err := os.Create(path)
		require.NoError(t, err)
		w := sstable.NewWriter(f, nil)
		require.NoError(t, w.Set([]byte("a"), []byte("ingested")))
		require.NoError(t, w.Set([]byte("b"), []byte("ingested")))
		require.NoError(t, w.DeleteRange([]byte("c"), []byte("d")))
		_, err = w.Finish()
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.NoError(t, db.Ingest(t.Context(), []string{path}, nil))
		require.NoError(t, db.Set([]byte("b"), []byte("new"), nil))
		require.NoError(t, db.Flush(t.Context()))
		require.NoError(t, db.Close())
		require.NoError(t, os.Remove(filepath.Join(dir, "CURRENT")))
		if damaged { // the footer alone: every block can be salvaged
			info, err := os.Stat(path)
			require.NoError(t, err)
			hit := false
			for _, name := range filesOf(t, dir, manifest.FileTable) {
				data, err := os.ReadFile(name)
				require.NoError(t, err)
				if int64(len(data)) == info.Size() && !hit {
					want, err := os.ReadFile(path)
					require.NoError(t, err)
					if string(want) != string(data) {
						continue
					}
					data[len(data)-1] ^= 1
					require.NoError(t, os.WriteFile(name, data, 0o600))
					hit = true
				}
			}
			require.True(t, hit, "the ingested file is among the store's")
		}
		_, err = Run(t.Context(), dir, Options{})
		require.NoError(t, err)
		require.Equal(t, map[string]string{"a": "ingested", "b": "new"}, contents(t, dir), "damaged: %v", damaged)
	}
}

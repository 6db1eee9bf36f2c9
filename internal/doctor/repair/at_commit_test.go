package repair

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/kv"
)

// Blob files whose records are in the order of commits are as good as others: tables, the manifest, or both are made
// anew of what there is, and blob files that are whole stay as they are.
func TestValuesThatCommitsSeparated(t *testing.T) {
	lose := map[string][]manifest.FileKind{
		"tables": {manifest.FileTable}, "manifest": {manifest.FileManifest},
		"both": {manifest.FileTable, manifest.FileManifest},
	}
	for what, kinds := range lose {
		for _, logged := range []bool{false, true} {
			from := filepath.Join(t.TempDir(), "open")
			db, err := kv.Open(from, &kv.Options{SeparateFrom: 100, SeparateAtCommit: true})
			require.NoError(t, err)
			want := map[string]string{}
			write := func(round int) {
				for _, i := range rand.New(rand.NewPCG(1, uint64(round))).Perm(30) {
					k, v := fmt.Sprintf("key%02d", i*round), fmt.Sprintf("%0200d", i+100*round)
					want[k] = v
					require.NoError(t, db.Set([]byte(k), []byte(v), kv.NoSync))
				}
			}
			write(1)
			write(2)
			require.NoError(t, db.Flush(t.Context()))
			flushed := filesOf(t, from, manifest.FileBlob)
			require.Len(t, flushed, 1)
			if logged {
				write(3)
			}
			dir := filepath.Join(t.TempDir(), "store")
			copyOpen(t, from, dir)
			require.NoError(t, db.Close())
			for _, kind := range kinds {
				for _, name := range filesOf(t, dir, kind) {
					require.NoError(t, os.Remove(name))
				}
			}
			r, err := Run(t.Context(), dir, Options{})
			require.NoError(t, err)
			got := contents(t, dir)
			for k := range want {
				if got[k] != want[k] {
					t.Errorf("%s %v: %s %q %q", what, logged, k, got[k], want[k])
				}
			}
			require.True(t, maps.Equal(want, got))
			for _, f := range r.Files {
				if f.Name == filepath.Base(flushed[0]) {
					require.Equal(t, Kept, f.Action, "%s %v: %s", what, logged, f.Why)
				}
			}
			require.FileExists(t, filepath.Join(dir, filepath.Base(flushed[0])))
		}
	}
}

package repair

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/kv"
)

// Operands and values that expire are there after a repair, with the merger's name,
// whether they were in a table or in a log, and with the manifest or without it.
func TestOperandsAndExpiringValuesSurviveARepair(t *testing.T) {
	for _, withManifest := range []bool{true, false} {
		dir := filepath.Join(t.TempDir(), "store")
		db, err := kv.Open(dir, &kv.Options{Merger: kv.Append(",")})
		require.NoError(t, err)
		require.NoError(t, db.Set([]byte("k"), []byte("1"), nil))
		require.NoError(t, db.Flush(t.Context()))
		require.NoError(t, db.Merge([]byte("k"), []byte("2"), nil))
		require.NoError(t, db.SetTTL([]byte("t"), []byte("v"), time.Hour, nil))
		require.NoError(t, db.Flush(t.Context()))
		require.NoError(t, db.Merge([]byte("k"), []byte("3"), nil))
		require.NoError(t, db.Close())
		require.NoError(t, os.Remove(filepath.Join(dir, "CURRENT")))
		if !withManifest {
			for _, name := range filesOf(t, dir, manifest.FileManifest) {
				require.NoError(t, os.Remove(name))
			}
		}
		_, err = Run(t.Context(), dir, Options{})
		require.NoError(t, err)
		_, err = kv.Open(dir, &kv.Options{Merger: kv.Int64Add})
		require.ErrorIs(t, err, kv.ErrInvalidOptions)
		require.Equal(t, map[string]string{"k": "1,2,3", "t": "v"}, contents(t, dir))
	}
}

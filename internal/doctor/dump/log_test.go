package dump

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
)

// A file that cannot be read has no faults: nobody knows what is in it.
func TestALogThatCannotBeReadIsAnError(t *testing.T) {
	for _, name := range []string{"000001.wal", "MANIFEST-000001"} {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.Mkdir(path, 0o700)) // it can be opened, and not read
		for _, dump := range []func() (*End, error){
			func() (*End, error) { return WAL(path, func(int64, Entry) error { return nil }) },
			func() (*End, error) { return Manifest(path, func(int64, *manifest.Edit) error { return nil }) },
		} {
			end, err := dump()
			require.Error(t, err)
			require.NotErrorIs(t, err, base.ErrCorruption)
			require.ErrorContains(t, err, name)
			require.Nil(t, end)
		}
	}
}

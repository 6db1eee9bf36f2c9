package manifest

import (
	"io"
	"testing"

	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
	"github.com/stretchr/testify/require"
)

// A manifest that was abandoned has all its edits, and does not say that the store was
// closed in good order.
func TestAnAbandonedManifestHasNoEnd(t *testing.T) {
	for _, abandon := range []bool{false, true} {
		fsys := vfs.NewMem()
		require.NoError(t, fsys.MkdirAll("db"))
		l, err := Create(fsys, "db", 1, &Edit{StoreID: 7, NextFile: 2})
		require.NoError(t, err)
		if abandon {
			require.NoError(t, l.Abandon())
		} else {
			require.NoError(t, l.Close())
		}
		f, err := fsys.Open("db/" + FileName(FileManifest, 1))
		require.NoError(t, err)
		r := wal.NewReader(f, "manifest", 1)
		_, err = r.Next()
		require.NoError(t, err)
		_, err = r.Next()
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, !abandon, r.Clean())
		require.NoError(t, f.Close())
	}
}

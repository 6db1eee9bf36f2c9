package repair

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Two compactions may have made the same key's sequence number 0, and something else of
// it: the newer file has the newer write.
func TestVersionsWithOneSequenceNumber(t *testing.T) {
	dir := t.TempDir()
	for num, e := range map[uint64]struct {
		kind  base.Kind
		value string
	}{10: {base.KindSetTTL, "12345678old"}, 11: {base.KindSet, "new"}} {
		f, err := vfs.OS.Create(filepath.Join(dir, manifest.FileName(manifest.FileTable, num)))
		require.NoError(t, err)
		w := sstable.NewWriter(f, nil)
		require.NoError(t, w.Add(base.MakeKey([]byte("key001"), 0, e.kind), []byte(e.value)))
		_, err = w.Finish()
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	_, err := Run(t.Context(), dir, Options{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"key001": "new"}, contents(t, dir))
}

package repair

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/kv"
)

// footerVersion is where the format version of a sorted file stands, from its end.
const footerVersion = 12

// A table of a newer format is told by name and never taken for damage, although the manifest can be
// read and lists it: a newer version of the program had the store. No repair touches it, not even for
// the sake of another table that is damaged.
func TestATableOfANewerFormatIsNoDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	db, err := kv.Open(dir, nil)
	require.NoError(t, err)
	for i := range 2 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "key%d", i), []byte("value"), kv.Sync))
		require.NoError(t, db.Flush())
	}
	require.NoError(t, db.Close())
	tables := filesOf(t, dir, manifest.FileTable)
	require.Len(t, tables, 2)
	data, err := os.ReadFile(tables[0])
	require.NoError(t, err)
	data[len(data)-footerVersion] = sstable.FormatVersion + 1
	require.NoError(t, os.WriteFile(tables[0], data, 0o600))

	refused := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, kv.ErrNewerFormat)
		require.ErrorContains(t, err, filepath.Base(tables[0]))
	}
	var told strings.Builder
	err = kv.Verify(dir, &told)
	refused(err)
	require.NotErrorIs(t, err, kv.ErrCorruption)
	require.NotContains(t, told.String(), "DAMAGED")

	db, err = kv.Open(dir, &kv.Options{ReadOnly: true})
	if err == nil {
		_, err = db.Get([]byte("key0"))
		require.NoError(t, db.Close())
	}
	refused(err)

	require.NoError(t, os.Truncate(tables[1], 100))
	err = kv.Verify(dir, &told)
	refused(err)
	require.ErrorIs(t, err, kv.ErrCorruption, "of the other")
	before := snapshotDir(t, dir)
	out := filepath.Join(t.TempDir(), "out")
	for _, o := range []Options{{DryRun: true}, {Out: out}, {}} {
		_, err = Run(t.Context(), dir, o)
		refused(err)
		require.Equal(t, before, snapshotDir(t, dir))
		require.NoDirExists(t, filepath.Join(dir, LostDir))
		require.NoDirExists(t, out)
	}
}

package storecmd

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// All keys of a dump have the format of the command line, and JSON has them as they are.
func TestDumpsWriteKeysInTheRequestedFormat(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	ok(t, "put", dir, "<a&b>", "<v>", "--create")
	ok(t, "compact", dir)
	of := func(pattern string) string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		require.NoError(t, err)
		require.Len(t, files, 1)
		return files[0]
	}
	require.Contains(t, ok(t, "dump-sstable", of("*.sst"), "--json"), `"key":"<a&b>","value":"<v>"}`)
	const key = "3c6126623e"
	require.Contains(t, ok(t, "dump-sstable", of("*.sst"), "--key-format", "hex"),
		"# smallest: "+key+"\n# largest: "+key+"\n")
	require.Contains(t, ok(t, "dump-manifest", of("MANIFEST-*"), "--key-format", "hex"),
		"smallest "+key+", largest "+key)
}

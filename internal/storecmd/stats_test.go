package storecmd

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/kv"
)

// stats --files lists the files of directories and object stores, with measured rates of their filters.
func TestStatsListsFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	policy, err := filterpolicy.Parse("bloom:8")
	require.NoError(t, err)
	db, err := kv.Open(dir, &kv.Options{Filter: policy, SeparateFrom: 1000, L0CompactionThreshold: 50})
	require.NoError(t, err)
	for i := range 6000 {
		value := make([]byte, 50+1000*(i%100/99))
		require.NoError(t, db.Set(fmt.Appendf(nil, "key-%05d", i), value, kv.Async))
		if i%3000 == 2999 {
			require.NoError(t, db.Flush(t.Context()))
		}
	}
	require.NoError(t, db.Close())
	url := "dir://" + filepath.Join(t.TempDir(), "objects")
	ok(t, "copy", dir, url, "--quiet")
	for _, at := range []string{dir, url} {
		var s struct{ Files []fileStats }
		require.NoError(t, json.Unmarshal([]byte(ok(t, "stats", at, "--json")), &s))
		require.Empty(t, s.Files, "they are not asked for")
		require.NoError(t, json.Unmarshal([]byte(ok(t, "stats", at, "--files", "--json")), &s))
		require.Len(t, s.Files, 2)
		for _, f := range s.Files {
			require.EqualValues(t, 3000, f.Entries)
			require.Equal(t, "bloom:8", f.Filter)
			require.InDelta(t, 8, f.BitsPerKey, 0.5)
			require.InEpsilon(t, f.Expected, *f.Passes, 0.3)
			require.Positive(t, f.BlobBytes)
			require.Positive(t, f.Blocks)
		}
		text := ok(t, "stats", at, "--files")
		require.True(t, strings.HasPrefix(text, ok(t, "stats", at)))
		require.Equal(t, 2, strings.Count(text, " bloom:8 "))
	}
	damaged := filepath.Join(dir, "broken")
	files, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	require.NoError(t, os.Rename(files[0], damaged))
	status, stdout, stderr := siftkv(t, "stats", dir, "--files")
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "damage: ")
	require.Equal(t, 1, strings.Count(stdout, " bloom:8 "), "what can be read is listed")
}

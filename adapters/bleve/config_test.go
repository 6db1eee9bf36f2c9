package siftbleve

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

func TestConfig(t *testing.T) {
	c, err := parseConfig(map[string]any{
		"path": "dir", "create_if_missing": false, "error_if_exists": true, "nosync": true, "filter": "cuckoo:12",
		"compression":  "zstd",
		"memory_limit": float64(64 << 20), "cache_size": 1 << 20, "memtable_size": int64(1 << 20),
	})
	require.NoError(t, err)
	filter, err := filterpolicy.Parse("cuckoo:12")
	require.NoError(t, err)
	require.Equal(t, &config{path: "dir", errorIfExists: true, writes: kv.NoSync, options: kv.Options{
		Filter: filter, Compression: sstable.Zstd, MemoryLimit: 64 << 20, CacheSize: 1 << 20, MemtableSize: 1 << 20,
	}}, c)

	c, err = parseConfig(map[string]any{"path": "dir"})
	require.NoError(t, err)
	require.Equal(t, &config{path: "dir", create: true, writes: kv.Sync}, c)

	c, err = parseConfig(map[string]any{"path": "dir", "read_only": true, "memory_limit": int32(5)})
	require.NoError(t, err)
	require.True(t, c.options.ReadOnly)
	require.EqualValues(t, 5, c.options.MemoryLimit)
}

func TestWrongConfigs(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		config map[string]any
		says   string
	}{
		{nil, "path: want the directory"},
		{map[string]any{"path": ""}, "path: want the directory"},
		{map[string]any{"path": 7}, "path: it is 7, a int: want a string"},
		{map[string]any{"path": dir, "in_memory": true}, "want one of them"},
		{map[string]any{"path": dir, "read_only": true, "error_if_exists": true}, "want one of them"},
		{map[string]any{"path": dir, "read_only": "yes"}, "read_only: it is yes, a string: want a bool"},
		{map[string]any{"path": dir, "nosync": 1}, "nosync: it is 1, a int: want a bool"},
		{map[string]any{"path": dir, "bucket": "bleve"}, `there is no key "bucket": want cache_size, compression, `},
		{map[string]any{"path": dir, "filter": "blocked"}, "filter: "},
		{map[string]any{"path": dir, "filter": 10}, "filter: it is 10, a int: want a string"},
		{map[string]any{"path": dir, "compression": "lzma"}, "compression: "},
		{map[string]any{"path": dir, "memory_limit": 1.5}, "memory_limit: it is 1.5: want a whole number"},
		{map[string]any{"path": dir, "memory_limit": 1e300}, "memory_limit: it is 1e+300: want a whole number"},
		{map[string]any{"path": dir, "memory_limit": "1GB"}, "memory_limit: it is 1GB, a string: want a number"},
		{map[string]any{"path": dir, "memory_limit": 100}, "MemoryLimit is 100"},
	} {
		s, err := New(nil, c.config)
		require.ErrorIs(t, err, ErrConfig, c.config)
		require.ErrorContains(t, err, c.says)
		require.Nil(t, s)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries, "nothing was made")
}

func TestWhatIsThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	refused := func(want error, config map[string]any) {
		t.Helper()
		config["path"] = dir
		s, err := New(nil, config)
		require.ErrorIs(t, err, want)
		require.Nil(t, s)
	}
	refused(ErrMissing, map[string]any{"create_if_missing": false})
	refused(os.ErrNotExist, map[string]any{"read_only": true})
	refused(ErrMissing, map[string]any{"read_only": true})
	require.NoDirExists(t, dir)

	s, err := New(nil, map[string]any{"path": dir, "create_if_missing": true, "error_if_exists": true})
	require.NoError(t, err)
	refused(kv.ErrLocked, map[string]any{})
	write(t, s, func(b batchOf) { b.Set([]byte("k"), []byte("v")) })
	require.NoError(t, s.Close())

	refused(ErrExists, map[string]any{"error_if_exists": true})
	refused(os.ErrExist, map[string]any{"error_if_exists": true})
	for _, config := range []map[string]any{{"create_if_missing": false}, {}, {"read_only": true}} {
		config["path"] = dir
		s, err := New(nil, config)
		require.NoError(t, err)
		require.Equal(t, "v", get(t, s, "k"))
		require.NoError(t, s.Close())
	}

	s = open(t, nil, map[string]any{"path": dir, "read_only": true})
	require.ErrorIs(t, execute(t, s, func(b batchOf) { b.Set([]byte("k"), nil) }), kv.ErrReadOnly)
	require.Equal(t, "v", get(t, s, "k"))

	foreign := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "bolt.db"), nil, 0o600))
	_, err = New(nil, map[string]any{"path": foreign})
	require.ErrorIs(t, err, kv.ErrForeignDirectory)
}

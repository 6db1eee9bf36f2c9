package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/frombbolt"
	"github.com/siftkv/siftkv/internal/cli/clitest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/kv"
)

func siftimport(t *testing.T, args ...string) clitest.Result {
	t.Helper()
	return (&clitest.Process{Args: args}).Run(t)
}

// works runs an import that has to succeed.
func works(t *testing.T, args ...string) clitest.Result {
	t.Helper()
	r := siftimport(t, args...)
	require.Zero(t, r.Status, r.Stderr)
	return r
}

// requireContent asserts that a store has a content, and verifies.
func requireContent(t *testing.T, want *content, dir string) {
	t.Helper()
	db, err := kv.Open(dir, &kv.Options{ReadOnly: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	it, err := db.NewIter(nil)
	require.NoError(t, err)
	i := 0
	for ok := it.First(); ok; ok = it.Next() {
		if i == len(want.keys) || !bytes.Equal(it.Key(), want.keys[i]) {
			require.Failf(t, "wrong key", "%q, the %d-th of %d", it.Key(), i, len(want.keys))
		}
		if !bytes.Equal(it.Value(), want.values[i]) {
			require.Failf(t, "wrong value", "of %q", it.Key())
		}
		i++
	}
	require.NoError(t, it.Close())
	require.Equal(t, len(want.keys), i, "keys")
}

// expected is what an import of a store with a content gives.
func expected(kind string, c *content) *content {
	if kind == "bbolt" {
		return c.prefixed(frombbolt.Prefix([]byte(bucketName)))
	}
	return c
}

// All keys come over from a store of each kind, and not a byte of the source changes, nor a time.
func TestImport(t *testing.T) {
	n := scale.Count(50_000, 1_000_000)
	c := testContent(1, n)
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			source := newStore(t, kind, c)
			before := files(t, source)
			dest := filepath.Join(t.TempDir(), "dest")
			r := works(t, source, dest)
			require.Contains(t, r.Stdout, "on both sides")
			require.Equal(t, before, files(t, source))
			requireContent(t, expected(kind, c), dest)
			require.NoDirExists(t, dest+".import")
			tables, err := filepath.Glob(filepath.Join(dest, "*.sst"))
			require.NoError(t, err)
			require.NotEmpty(t, tables)
			for _, name := range tables {
				info, err := os.Stat(name)
				require.NoError(t, err)
				require.Equal(t, os.FileMode(0o600), info.Mode(), name)
			}
		})
	}
}

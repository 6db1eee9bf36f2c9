package storecmd

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// Commands read stores in object stores with separated values, and checkpoints and clones of them.
func TestCommandsOnBlobFilesInAnObjectStore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "objects")
	store, err := objstore.OpenDir(dir)
	require.NoError(t, err)
	db, err := kv.Open("", &kv.Options{SeparateFrom: 100, Objects: &objects.Config{Store: store}})
	require.NoError(t, err)
	for i := range 50 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "%03d", i), bytes.Repeat([]byte{byte('a' + i%26)}, 50*i), kv.NoSync))
	}
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Close())
	require.NoError(t, store.Close())

	url := "dir://" + dir
	require.Contains(t, ok(t, "verify", url), ".blob")
	want := ok(t, "scan", url)
	require.Contains(t, want, string(bytes.Repeat([]byte{'x'}, 50*49)))
	require.Equal(t, want, ok(t, "scan", url))
	ok(t, "checkpoint", url, "c")
	require.Contains(t, ok(t, "checkpoints", url), "Z  2 ")
	require.Equal(t, want, ok(t, "scan", url+"?checkpoint=c"))
	ok(t, "clone", url, "b", "--checkpoint", "c")
	require.Equal(t, want, ok(t, "scan", url+"?branch=b"))
	ok(t, "drop-checkpoint", url, "c")
	ok(t, "compact", url+"?branch=b")
	require.Equal(t, want, ok(t, "scan", url+"?branch=b"))

	blobs, err := filepath.Glob(filepath.Join(dir, "sst", "*.blob"))
	require.NoError(t, err)
	require.Len(t, blobs, 1)
	flip(t, blobs[0], 3000)
	status, said, _ := siftkv(t, "verify", url)
	require.Equal(t, statusDamage, status)
	require.Contains(t, said, "large value")
	require.Contains(t, said, filepath.Base(blobs[0])[:len("000012")]+".blob")
}

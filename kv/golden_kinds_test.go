package kv

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/siftkv/siftkv/internal/golden"
	"github.com/stretchr/testify/require"
)

// goldenKinds is a store with operands and values that expire, in tables and in a
// log. Every later version opens it.
const goldenKinds = "testdata/store-kinds"

func writeGoldenKinds(t *testing.T, dir string) {
	t.Helper()
	db := openDir(t, dir, &Options{Merger: modelMerger, Clock: (&fakeClock{}).time, L0CompactionThreshold: 50})
	set(t, db, "over a value", "a")
	set(t, db, "expired", "hidden")
	mergeAll(t, db, "alone", "a", "b")
	require.NoError(t, db.Flush())
	mergeAll(t, db, "over a value", "b", "c")
	require.NoError(t, db.SetTTL([]byte("lives long"), []byte("v"), MaxTTL, Sync))
	require.NoError(t, db.SetTTL([]byte("expired"), []byte("v"), 1000, Sync))
	require.NoError(t, db.SetTTL([]byte("over a value that expires"), []byte("v"), 1000, Sync))
	mergeAll(t, db, "over a value that expires", "w")
	require.NoError(t, db.Flush())
	mergeAll(t, db, "over a value", "in the log")
	require.NoError(t, db.SetTTL([]byte("in the log"), []byte("v"), MaxTTL, Sync))
	require.NoError(t, db.Close())
	require.NoError(t, os.Remove(filepath.Join(dir, "LOCK")))
}

func TestTheGoldenStoreOfKindsOpens(t *testing.T) {
	if golden.Update() {
		require.NoError(t, os.RemoveAll(goldenKinds))
		writeGoldenKinds(t, goldenKinds)
	}
	later := &fakeClock{}
	later.advance(1e9)
	want := model{"alone": "a,b", "over a value": "a,b,c,in the log", "lives long": "v", "in the log": "v",
		"over a value that expires": "w"}
	dir := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.CopyFS(dir, os.DirFS(goldenKinds)))
	require.NoError(t, Verify(dir, io.Discard))
	for range 3 {
		db := openDir(t, dir, &Options{Clock: later.time})
		requireContents(t, want, db)
		require.NoError(t, db.Compact(nil, nil))
		requireContents(t, want, db)
		require.NoError(t, db.Close())
		require.NoError(t, Verify(dir, io.Discard))
	}
}

package kv

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/sstable"
)

// goldenApart is a store with values in blob files, which expire, are overwritten, or lie under
// operands, in tables of two levels and a log. Every later version opens it.
const goldenApart = "testdata/store-apart"

func goldenApartContents() storetest.Model {
	value := func(of string) string { return string(bytes.Repeat([]byte(of), 100)) }
	return storetest.Model{"inline": "short", "apart": value("second "), "lives long": value("expiring "),
		"operands": value("under ") + ",an operand", "packed": value("0"), "in the log": value("log ")}
}

func writeGoldenApart(t *testing.T, dir string) {
	t.Helper()
	m := goldenApartContents()
	for n, c := range []sstable.Compression{sstable.NoCompression, sstable.Snappy, sstable.Zstd} {
		db := openDir(t, dir, &Options{Merger: modelMerger, Clock: (&storetest.Clock{}).Time, L0CompactionThreshold: 50,
			SeparateFrom: 50, Compression: c})
		switch n {
		case 0:
			set(t, db, "apart", string(bytes.Repeat([]byte("first "), 100)))
			set(t, db, "inline", m["inline"])
			set(t, db, "operands", string(bytes.Repeat([]byte("under "), 100)))
			require.NoError(t, db.SetTTL([]byte("expired"), []byte(m["apart"]), 1000, Sync))
			require.NoError(t, db.SetTTL([]byte("lives long"), []byte(m["lives long"]), MaxTTL, Sync))
			require.NoError(t, db.Flush(t.Context()))
			require.NoError(t, db.Compact(t.Context(), nil, nil))
		case 1:
			set(t, db, "apart", m["apart"])
			mergeAll(t, db, "operands", "an operand")
			require.NoError(t, db.Flush(t.Context()))
		case 2:
			set(t, db, "packed", m["packed"])
			require.NoError(t, db.Flush(t.Context()))
			set(t, db, "in the log", m["in the log"])
		}
		require.NoError(t, db.Close())
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "LOCK")))
}

func TestTheGoldenStoreOfValuesApartOpens(t *testing.T) {
	if golden.Absent(goldenApart) {
		writeGoldenApart(t, goldenApart)
	}
	later := &storetest.Clock{}
	later.Advance(1e9)
	want := goldenApartContents()
	dir := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.CopyFS(dir, os.DirFS(goldenApart)))
	require.NoError(t, Verify(t.Context(), dir, io.Discard))
	for range 3 {
		db := openDir(t, dir, &Options{Clock: later.Time})
		requireContents(t, want, db)
		requireBlobs(t, db)
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		requireContents(t, want, db)
		require.Positive(t, requireBlobs(t, db))
		require.NoError(t, db.Close())
		require.NoError(t, Verify(t.Context(), dir, io.Discard))
	}
}

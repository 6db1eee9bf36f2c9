package kv

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/sstable"
)

// goldenStore is a store that version 1 of the format wrote. Every later version
// opens it.
const goldenStore = "testdata/store-v1"

// goldenContents is what the golden store holds.
func goldenContents() storetest.Model {
	m := storetest.Model{"": "the empty key", "only in the log": "and never in a table", "rewritten": "in the log"}
	for _, part := range goldenParts {
		for i := range 12 {
			if k := fmt.Sprintf("%s/%03d", part.filter, i); i != 3 && i != 7 {
				m[k] = strings.Repeat(part.filter+" ", i)
			}
		}
	}
	return m
}

// goldenParts are the tables of the golden store, one each.
var goldenParts = []struct {
	compression sstable.Compression
	filter      string
}{
	{sstable.NoCompression, "none"},
	{sstable.Snappy, "bloom:10"},
	{sstable.Zstd, "blocked:10"},
	{sstable.Snappy, "cuckoo:12"},
}

// writeGoldenStore writes the store that goldenContents describes: deleted,
// overwritten and range-deleted keys, a table for each part, and a log.
func writeGoldenStore(t *testing.T, dir string) {
	t.Helper()
	for n, part := range goldenParts {
		db := openDir(t, dir, &Options{Compression: part.compression, Filter: mustParse(part.filter),
			L0CompactionThreshold: 50})
		set(t, db, "rewritten", part.filter)
		for i := range 12 {
			set(t, db, fmt.Sprintf("%s/%03d", part.filter, i), strings.Repeat(part.filter+" ", i))
		}
		if n == 0 {
			set(t, db, "", "the empty key")
			require.NoError(t, db.Flush(t.Context()))
		}
		require.NoError(t, db.Delete(fmt.Appendf(nil, "%s/003", part.filter), Sync))
		require.NoError(t, db.DeleteRange(fmt.Appendf(nil, "%s/007", part.filter),
			fmt.Appendf(nil, "%s/008", part.filter), Sync))
		require.NoError(t, db.Flush(t.Context()))
		if n == 0 {
			require.NoError(t, db.Compact(t.Context(), []byte("none"), []byte("none/999")))
		}
		if n == len(goldenParts)-1 {
			b := db.NewBatch()
			require.NoError(t, b.Set([]byte("rewritten"), []byte("in the log")))
			require.NoError(t, b.Set([]byte("only in the log"), []byte("and never in a table")))
			require.NoError(t, b.Commit(Sync))
		}
		require.NoError(t, db.Close())
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "LOCK")))
}

func copyGolden(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.CopyFS(dir, os.DirFS(goldenStore)))
	return dir
}

func TestTheGoldenStoreOpens(t *testing.T) {
	if golden.Absent(goldenStore) {
		writeGoldenStore(t, goldenStore)
	}
	want := goldenContents()

	dir := copyGolden(t)
	require.NoError(t, Verify(t.Context(), dir, io.Discard))
	db := openDir(t, dir, &Options{ReadOnly: true})
	requireContents(t, want, db)
	m := db.Metrics()
	files := 0
	for _, l := range m.Levels {
		files += l.Files
	}
	require.GreaterOrEqual(t, files, len(goldenParts))
	require.NotZero(t, m.MemtableBytes, "the log has writes that are in no table")
	for k, v := range want {
		got, err := db.Get([]byte(k))
		require.NoError(t, err, "%q", k)
		require.Equal(t, v, string(got))
	}
	require.Zero(t, db.Metrics().UnusableFilters, "a filter family of version 1 is not understood")
	require.NoError(t, db.Close())

	dir = copyGolden(t)
	db = openDir(t, dir, nil)
	requireContents(t, want, db)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	requireContents(t, want, db)
	set(t, db, "new", "write")
	want["new"] = "write"
	require.NoError(t, db.Close())
	db = openDir(t, dir, nil)
	requireContents(t, want, db)
	require.NoError(t, db.Close())
	require.NoError(t, Verify(t.Context(), dir, io.Discard))
}

func mustParse(spec string) filterpolicy.Policy {
	p, err := filterpolicy.Parse(spec)
	if err != nil {
		panic(err)
	}
	return p
}

// goldenKinds is a store with operands and values that expire, in tables and in a
// log. Every later version opens it.
const goldenKinds = "testdata/store-kinds"

func writeGoldenKinds(t *testing.T, dir string) {
	t.Helper()
	db := openDir(t, dir, &Options{Merger: modelMerger, Clock: (&storetest.Clock{}).Time, L0CompactionThreshold: 50})
	set(t, db, "over a value", "a")
	set(t, db, "expired", "hidden")
	mergeAll(t, db, "alone", "a", "b")
	require.NoError(t, db.Flush(t.Context()))
	mergeAll(t, db, "over a value", "b", "c")
	require.NoError(t, db.SetTTL([]byte("lives long"), []byte("v"), MaxTTL, Sync))
	require.NoError(t, db.SetTTL([]byte("expired"), []byte("v"), 1000, Sync))
	require.NoError(t, db.SetTTL([]byte("over a value that expires"), []byte("v"), 1000, Sync))
	mergeAll(t, db, "over a value that expires", "w")
	require.NoError(t, db.Flush(t.Context()))
	mergeAll(t, db, "over a value", "in the log")
	require.NoError(t, db.SetTTL([]byte("in the log"), []byte("v"), MaxTTL, Sync))
	require.NoError(t, db.Close())
	require.NoError(t, os.Remove(filepath.Join(dir, "LOCK")))
}

func TestTheGoldenStoreOfKindsOpens(t *testing.T) {
	if golden.Absent(goldenKinds) {
		writeGoldenKinds(t, goldenKinds)
	}
	later := &storetest.Clock{}
	later.Advance(1e9)
	want := storetest.Model{"alone": "a,b", "over a value": "a,b,c,in the log", "lives long": "v", "in the log": "v",
		"over a value that expires": "w"}
	dir := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.CopyFS(dir, os.DirFS(goldenKinds)))
	require.NoError(t, Verify(t.Context(), dir, io.Discard))
	for range 3 {
		db := openDir(t, dir, &Options{Clock: later.Time})
		requireContents(t, want, db)
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		requireContents(t, want, db)
		require.NoError(t, db.Close())
		require.NoError(t, Verify(t.Context(), dir, io.Discard))
	}
}

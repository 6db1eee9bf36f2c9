package formats

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// goldenSeparated is a store with values in blob files, which expire, are overwritten, or are under
// operands, in tables of two levels and a log. Every later version opens it.
const goldenSeparated = testdata + "store-apart"

func separatedContents() storetest.Model {
	value := func(of string) string { return string(bytes.Repeat([]byte(of), 100)) }
	return storetest.Model{"inline": "short", "apart": value("second "), "lives long": value("expiring "),
		"operands": value("under ") + ",an operand", "packed": value("0"), "in the log": value("log ")}
}

func writeGoldenSeparated(t *testing.T, dir string) {
	t.Helper()
	m := separatedContents()
	for n, c := range []sstable.Compression{sstable.NoCompression, sstable.Snappy, sstable.Zstd} {
		db := stores.OpenDir(t, dir, &kv.Options{Merger: stores.ModelMerger, Clock: (&storetest.Clock{}).Time,
			L0CompactionThreshold: 50,
			SeparateFrom:          50, Compression: c})
		switch n {
		case 0:
			stores.Set(t, db, "apart", string(bytes.Repeat([]byte("first "), 100)))
			stores.Set(t, db, "inline", m["inline"])
			stores.Set(t, db, "operands", string(bytes.Repeat([]byte("under "), 100)))
			require.NoError(t, db.SetTTL([]byte("expired"), []byte(m["apart"]), 1000, kv.Sync))
			require.NoError(t, db.SetTTL([]byte("lives long"), []byte(m["lives long"]), kv.MaxTTL, kv.Sync))
			require.NoError(t, db.Flush(t.Context()))
			require.NoError(t, db.Compact(t.Context(), nil, nil))
		case 1:
			stores.Set(t, db, "apart", m["apart"])
			mergeAll(t, db, "operands", "an operand")
			require.NoError(t, db.Flush(t.Context()))
		case 2:
			stores.Set(t, db, "packed", m["packed"])
			require.NoError(t, db.Flush(t.Context()))
			stores.Set(t, db, "in the log", m["in the log"])
		}
		require.NoError(t, db.Close())
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "LOCK")))
}

// goldenAtCommit is a store whose log has handles of values that are in the log's blob file, and in one that was
// streamed. Every later version opens it.
const goldenAtCommit = testdata + "store-at-commit"

func atCommitContents() storetest.Model {
	return storetest.Model{"in a table": strings.Repeat("first ", 100), "inline": "short",
		"in the log": strings.Repeat("log ", 100), "streamed": strings.Repeat("stream ", 100)}
}

func writeGoldenAtCommit(t *testing.T, dir string) {
	t.Helper()
	m := atCommitContents()
	db := stores.OpenDir(t, dir, stores.With(harness.Harness{MinStreamed: 1},
		&kv.Options{SeparateFrom: 50, SeparateAtCommit: true}))
	stores.Set(t, db, "in a table", m["in a table"])
	require.NoError(t, db.Flush(t.Context()))
	stores.Set(t, db, "inline", m["inline"])
	stores.Set(t, db, "in the log", m["in the log"])
	streamed := m["streamed"]
	require.NoError(t, db.SetReader(t.Context(), []byte("streamed"), int64(len(streamed)), strings.NewReader(streamed),
		kv.Sync))
	require.NoError(t, db.Close())
	require.NoError(t, os.Remove(filepath.Join(dir, "LOCK")))
}

func TestTheGoldenStoreOfSeparatedValuesOpens(t *testing.T) {
	for _, g := range []struct {
		dir   string
		want  storetest.Model
		write func(t *testing.T, dir string)
	}{
		{goldenSeparated, separatedContents(), writeGoldenSeparated},
		{goldenAtCommit, atCommitContents(), writeGoldenAtCommit},
	} {
		t.Run(filepath.Base(g.dir), func(t *testing.T) {
			if golden.Absent(g.dir) {
				g.write(t, g.dir)
			}
			later := &storetest.Clock{}
			later.Advance(1e9)
			dir := copyGolden(t, g.dir)
			require.NoError(t, kv.Verify(t.Context(), dir, io.Discard))
			db := stores.OpenDir(t, dir, &kv.Options{Clock: later.Time, ReadOnly: true})
			storetest.RequireContents(t, g.want, db)
			require.NoError(t, db.Close())
			for range 3 {
				db := stores.OpenDir(t, dir, &kv.Options{Clock: later.Time})
				storetest.RequireContents(t, g.want, db)
				storetest.RequireBlobs(t, db)
				require.NoError(t, db.Compact(t.Context(), nil, nil))
				storetest.RequireContents(t, g.want, db)
				require.Positive(t, storetest.RequireBlobs(t, db))
				stores.Set(t, db, "new", "write")
				g.want["new"] = "write"
				require.NoError(t, db.Close())
				require.NoError(t, kv.Verify(t.Context(), dir, io.Discard))
			}
		})
	}
}

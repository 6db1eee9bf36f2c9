package formats

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/backup"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/manifest"
	tables "github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/wal"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// testdata has the golden files: stores and backups that every later version reads.
const testdata = "../../../kv/testdata/"

// goldenStores are stores whose sorted files have a version of the format, with values and tombstones of both kinds.
// Every later version opens them.
var goldenStores = []goldenStore{
	{testdata + "store-v1", []goldenPart{
		{compression: sstable.NoCompression, filter: "none"},
		{compression: sstable.Snappy, filter: "bloom:10"},
		{compression: sstable.Zstd, filter: "blocked:10"},
		{compression: sstable.Snappy, filter: "cuckoo:12"},
	}},
	{testdata + "store-v3", []goldenPart{
		{compression: sstable.NoCompression, filter: "blocked:10", ranges: "cut:6"},
		{compression: sstable.Snappy, filter: "xor:8"},
		{compression: sstable.Zstd, filter: "fuse:8"},
		{compression: sstable.Snappy, filter: "ribbon:7"},
		{compression: sstable.Zstd, filter: "gcs:7"},
		{compression: sstable.NoCompression, filter: "quotient:7"},
	}},
}

// A goldenStore has a table for each part at least.
type goldenStore struct {
	dir   string
	parts []goldenPart
}

type goldenPart struct {
	compression    sstable.Compression
	filter, ranges string
}

// contents is what the store holds.
func (g *goldenStore) contents() storetest.Model {
	m := storetest.Model{"": "the empty key", "only in the log": "and never in a table", "rewritten": "in the log"}
	for _, part := range g.parts {
		for i := range 12 {
			if k := fmt.Sprintf("%s/%03d", part.filter, i); i != 3 && i != 7 {
				m[k] = strings.Repeat(part.filter+" ", i)
			}
		}
	}
	return m
}

// write writes the store that contents describes: deleted, overwritten and
// range-deleted keys, a table for each part, and a log.
func (g *goldenStore) write(t *testing.T) {
	t.Helper()
	dir := g.dir
	for n, part := range g.parts {
		o := kv.Options{Compression: part.compression, Filter: storetest.Filter(part.filter), L0CompactionThreshold: 50}
		if part.ranges != "" {
			var err error
			o.RangeFilter, err = filterpolicy.ParseRange(part.ranges)
			require.NoError(t, err)
		}
		db := stores.OpenDir(t, dir, &o)
		stores.Set(t, db, "rewritten", part.filter)
		for i := range 12 {
			stores.Set(t, db, fmt.Sprintf("%s/%03d", part.filter, i), strings.Repeat(part.filter+" ", i))
		}
		if n == 0 {
			stores.Set(t, db, "", "the empty key")
			require.NoError(t, db.Flush(t.Context()))
		}
		require.NoError(t, db.Delete(fmt.Appendf(nil, "%s/003", part.filter), kv.Sync))
		require.NoError(t, db.DeleteRange(fmt.Appendf(nil, "%s/007", part.filter),
			fmt.Appendf(nil, "%s/008", part.filter), kv.Sync))
		require.NoError(t, db.Flush(t.Context()))
		if n == 0 {
			require.NoError(t, db.Compact(t.Context(), []byte(part.filter), []byte(part.filter+"/999")))
		}
		if n == len(g.parts)-1 {
			b := db.NewBatch()
			require.NoError(t, b.Set([]byte("rewritten"), []byte("in the log")))
			require.NoError(t, b.Set([]byte("only in the log"), []byte("and never in a table")))
			require.NoError(t, b.Commit(kv.Sync))
		}
		require.NoError(t, db.Close())
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "LOCK")))
}

func copyGolden(t *testing.T, store string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.CopyFS(dir, os.DirFS(store)))
	return dir
}

func TestTheGoldenStoreOpens(t *testing.T) {
	for _, g := range goldenStores {
		t.Run(filepath.Base(g.dir), g.opens)
	}
}

func (g *goldenStore) opens(t *testing.T) {
	if golden.Absent(g.dir) {
		g.write(t)
	}
	want := g.contents()

	dir := copyGolden(t, g.dir)
	require.NoError(t, kv.Verify(t.Context(), dir, io.Discard))
	db := stores.OpenDir(t, dir, &kv.Options{ReadOnly: true})
	storetest.RequireContents(t, want, db)
	m := db.Metrics()
	files := 0
	for _, l := range m.Levels {
		files += l.Files
	}
	require.GreaterOrEqual(t, files, len(g.parts))
	require.NotZero(t, m.MemtableBytes, "the log has writes that are in no table")
	for k, v := range want {
		got, err := db.Get([]byte(k))
		require.NoError(t, err, "%q", k)
		require.Equal(t, v, string(got))
	}
	require.Zero(t, db.Metrics().UnusableFilters, "a filter family is not understood")
	require.NoError(t, db.Close())

	dir = copyGolden(t, g.dir)
	db = stores.OpenDir(t, dir, nil)
	storetest.RequireContents(t, want, db)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	storetest.RequireContents(t, want, db)
	stores.Set(t, db, "new", "write")
	want["new"] = "write"
	require.NoError(t, db.Close())
	db = stores.OpenDir(t, dir, nil)
	storetest.RequireContents(t, want, db)
	require.NoError(t, db.Close())
	require.NoError(t, kv.Verify(t.Context(), dir, io.Discard))
}

// goldenKinds is a store with operands and values that expire, in tables and in a
// log. Every later version opens it.
const goldenKinds = testdata + "store-kinds"

func writeGoldenKinds(t *testing.T, dir string) {
	t.Helper()
	db := stores.OpenDir(t, dir, &kv.Options{Merger: stores.ModelMerger, Clock: (&storetest.Clock{}).Time,
		L0CompactionThreshold: 50})
	stores.Set(t, db, "over a value", "a")
	stores.Set(t, db, "expired", "hidden")
	mergeAll(t, db, "alone", "a", "b")
	require.NoError(t, db.Flush(t.Context()))
	mergeAll(t, db, "over a value", "b", "c")
	require.NoError(t, db.SetTTL([]byte("lives long"), []byte("v"), kv.MaxTTL, kv.Sync))
	require.NoError(t, db.SetTTL([]byte("expired"), []byte("v"), 1000, kv.Sync))
	require.NoError(t, db.SetTTL([]byte("over a value that expires"), []byte("v"), 1000, kv.Sync))
	mergeAll(t, db, "over a value that expires", "w")
	require.NoError(t, db.Flush(t.Context()))
	mergeAll(t, db, "over a value", "in the log")
	require.NoError(t, db.SetTTL([]byte("in the log"), []byte("v"), kv.MaxTTL, kv.Sync))
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
	dir := copyGolden(t, goldenKinds)
	require.NoError(t, kv.Verify(t.Context(), dir, io.Discard))
	for range 3 {
		db := stores.OpenDir(t, dir, &kv.Options{Clock: later.Time})
		storetest.RequireContents(t, want, db)
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		storetest.RequireContents(t, want, db)
		stores.Set(t, db, "new", "write")
		want["new"] = "write"
		require.NoError(t, db.Close())
		require.NoError(t, kv.Verify(t.Context(), dir, io.Discard))
	}
}

// Every version of sorted files, logs, manifests, blob files and CURRENT is that of a file in a golden store, and every
// version of backups that of a golden one.
func TestEveryVersionHasAGoldenStore(t *testing.T) {
	files, err := filepath.Glob(testdata + "store-*/*")
	require.NoError(t, err)
	backups, err := filepath.Glob(testdata + "backup-*")
	require.NoError(t, err)
	newest := map[string]uint32{"MANIFEST": wal.FormatVersion, ".wal": wal.FormatVersion, ".blob": blob.FormatVersion,
		".sst": tables.FormatVersion, "CURRENT": manifest.FormatVersion, ".bin": backup.FormatVersion}
	there := map[string]map[uint32]bool{}
	for _, path := range slices.Concat(files, backups) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		kind, _, _ := strings.Cut(filepath.Base(path), "-")
		kind = cmp.Or(filepath.Ext(path), kind)
		version := binary.LittleEndian.Uint32(data[8:]) // of most formats
		switch kind {
		case ".sst":
			version = binary.LittleEndian.Uint32(data[len(data)-12:])
		case "CURRENT":
			_, err := fmt.Sscanf(string(data), "siftkv format=%d ", &version)
			require.NoError(t, err)
		}
		if there[kind] == nil {
			there[kind] = map[uint32]bool{}
		}
		there[kind][version] = true
	}
	for kind, n := range newest {
		for version := range n {
			require.True(t, there[kind][version+1], "no golden file is a %s of version %d", kind, version+1)
		}
	}
}

// A store with a file that a newer release wrote says so by name, and calls it no damage. Where the file tells before
// the store is open, nothing is touched.
func TestFilesOfANewerFormatAreNoDamage(t *testing.T) {
	log := func(data []byte) { // a manifest is a log too
		binary.LittleEndian.PutUint32(data[8:], 2)
		binary.LittleEndian.PutUint32(data[24:], base.Checksum(0, 0, data[:24]))
	}
	for file, c := range map[string]struct {
		opens bool // the store
		needs int  // keys whose lookup reads the version
		newer func(data []byte)
	}{
		"MANIFEST-000012": {newer: log},
		"000014.wal":      {newer: log},
		"000005.blob":     {opens: true, newer: log}, // a header alike, and a lookup reads a record, by its handle
		"000006.sst": {opens: true, needs: 3, newer: func(data []byte) {
			footer := data[len(data)-56:]
			binary.LittleEndian.PutUint32(footer[40:], base.Checksum(tables.FormatVersion+1, 0, footer[:40]))
			binary.LittleEndian.PutUint32(footer[44:], tables.FormatVersion+1)
		}},
	} {
		t.Run(file, func(t *testing.T) {
			dir := copyGolden(t, goldenSeparated)
			path := filepath.Join(dir, file)
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			c.newer(data)
			require.NoError(t, os.WriteFile(path, data, 0o600))
			before := storetest.ReadDir(t, dir)
			refused := func(err error) {
				t.Helper()
				require.ErrorIs(t, err, kv.ErrNewerFormat)
				require.NotErrorIs(t, err, kv.ErrCorruption)
				require.ErrorContains(t, err, file)
			}
			refused(kv.Verify(t.Context(), dir, io.Discard))
			for _, o := range []*kv.Options{{ReadOnly: true}, nil} {
				db, err := kv.Open(dir, o)
				if !c.opens {
					refused(err)
					continue
				}
				require.NoError(t, err)
				needed := 0
				for key, want := range separatedContents() {
					if got, err := db.Get([]byte(key)); err != nil {
						refused(err)
						needed++
					} else {
						require.Equal(t, want, string(got))
					}
				}
				require.Equal(t, c.needs, needed)
				require.NoError(t, db.Close())
			}
			if !c.opens {
				after := storetest.ReadDir(t, dir)
				delete(after, filepath.Join(dir, manifest.LockName))
				require.Equal(t, before, after)
			}
		})
	}
}

// mergeAll merges operands into a key, without a sync.
func mergeAll(tb testing.TB, db *kv.DB, key string, operands ...string) {
	tb.Helper()
	for _, o := range operands {
		require.NoError(tb, db.Merge([]byte(key), []byte(o), kv.NoSync))
	}
}

package damage

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/compression"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/hostile"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// bombedLog makes a store whose log has n handles, each of a value of 64 KiB of a log's blob file: all of one record,
// or each of a compressed one of its own. It returns the bytes of both files.
func bombedLog(t *testing.T, n int, kind compression.Kind) (dir string, size int) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	db := stores.OpenDir(t, dir, &kv.Options{SeparateFrom: 50, SeparateAtCommit: true})
	stores.Set(t, db, "a", strings.Repeat("value", 100)) // so that the manifest has the features
	_, num := manifest.ParseFileName(filepath.Base(storetest.OnlyFile(t, dir, manifest.FileBlob)))
	_, log := manifest.ParseFileName(filepath.Base(storetest.OnlyFile(t, dir, manifest.FileWAL)))
	from := filepath.Join(t.TempDir(), "bombed")
	harness.Settle(db)
	require.NoError(t, os.CopyFS(from, os.DirFS(dir)))
	require.NoError(t, db.Close())

	f, err := vfs.OS.Create(filepath.Join(from, manifest.FileName(manifest.FileBlob, num)))
	require.NoError(t, err)
	values := blob.NewWriter(f, blob.WriterOptions{Num: num, ByCommit: true, Compression: kind})
	out, err := vfs.OS.Create(filepath.Join(from, manifest.FileName(manifest.FileWAL, log)))
	require.NoError(t, err)
	w := wal.NewWriter(out, log)
	var h blob.Handle
	for i := range n {
		if i == 0 || kind != compression.None {
			h, err = values.Add([]byte("a"), base.SeqNum(i+1), 0, make([]byte, 64<<10))
			require.NoError(t, err)
		}
		var b batchrepr.Writer
		b.Add(base.KindSetSeparated, []byte("a"), h.Append(nil))
		require.NoError(t, w.Append(b.Seal(base.SeqNum(i+1))))
	}
	require.NoError(t, values.Flush())
	require.NoError(t, w.Sync())
	size = int(values.Size()) + n*32
	require.NoError(t, f.Close())
	require.NoError(t, out.Close())
	return from, size
}

// What a log's handles lead to is in memory when it is replayed: no more than its blob file has.
func TestLogBombsOfSeparatedValues(t *testing.T) {
	t.Parallel()
	for kind, good := range map[compression.Kind]bool{compression.None: true, compression.Zstd: false} {
		dir, size := bombedLog(t, 1000, kind)
		hostile.Bound{PerByte: 8, Fixed: 16 << 20}.Require(t, size, func() {
			db, err := kv.OpenReadOnly(dir, &kv.Options{CacheSize: -1, MemtableSize: 1 << 20})
			require.NoError(t, err)
			there, err := db.Has([]byte("a"))
			require.NoError(t, err)
			require.Equal(t, good, there)
			require.NoError(t, db.Close())
		})
		_, err := kv.Open(dir, &kv.Options{RecoveryMode: kv.Absolute})
		require.ErrorIs(t, err, kv.ErrCorruption)
		require.ErrorContains(t, err, ".blob at offset 32: a log has a handle")
	}
}

// A log that goes on with handles of a blob file that was listed is damaged: both openings name the file.
func TestALogWithHandlesOfAListedFileIsRefused(t *testing.T) {
	dir, from := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "forged")
	db := stores.OpenDir(t, dir, stores.With(harness.Harness{MinStreamed: 1}, &kv.Options{}))
	require.NoError(t, db.SetReader(t.Context(), []byte("a"), 5000, strings.NewReader(strings.Repeat("v", 5000)),
		kv.Sync))
	require.NoError(t, db.Flush(t.Context()))
	harness.Settle(db)
	name := storetest.OnlyFile(t, dir, manifest.FileBlob)
	_, num := manifest.ParseFileName(filepath.Base(name))
	size, err := vfs.OS.Stat(name)
	require.NoError(t, err)
	_, log := manifest.ParseFileName(filepath.Base(storetest.OnlyFile(t, dir, manifest.FileWAL)))
	require.NoError(t, os.CopyFS(from, os.DirFS(dir)))
	require.NoError(t, db.Close())

	out, err := vfs.OS.Create(filepath.Join(from, manifest.FileName(manifest.FileWAL, log)))
	require.NoError(t, err)
	w := wal.NewWriter(out, log)
	var b batchrepr.Writer
	h := blob.Handle{File: num, Offset: 32, Length: size - blob.MinSize, Size: 5000}
	b.Add(base.KindSetSeparated, []byte("a"), h.Append(nil))
	require.NoError(t, w.Append(b.Seal(2)))
	require.NoError(t, w.Sync())
	require.NoError(t, out.Close())
	for _, readOnly := range []bool{true, false} {
		_, err = kv.Open(from, &kv.Options{ReadOnly: readOnly})
		require.ErrorIs(t, err, kv.ErrCorruption)
		require.ErrorContains(t, err, filepath.Base(name))
	}
}

// denseFile has a block of 4 MiB in 500 bytes, as writers stored them before they knew of
// readers that refuse it.
var denseFile = filepath.Join("..", "..", "sstable", "testdata", "v3-zstd-dense.sst")

// What comes from elsewhere is refused if a lookup would need memory out of proportion to
// it. What the store has is read, whichever version of it wrote that.
func TestIngestRefusesBlockBombsAndTheStoreReadsItsOwn(t *testing.T) {
	db := stores.OpenDir(t, t.TempDir(), nil)
	info, err := os.Stat(denseFile)
	require.NoError(t, err)
	hostile.Bound{PerByte: 256, Fixed: 2 << 20}.Require(t, int(info.Size()), func() {
		err = db.Ingest(t.Context(), []string{denseFile}, nil)
	})
	require.ErrorIs(t, err, kv.ErrCorruption)
	require.ErrorContains(t, err, "ingest it with SkipVerify",
		"the error says what to do about a file that is old and good")

	require.NoError(t, db.Ingest(context.Background(), []string{denseFile}, &kv.IngestOptions{SkipVerify: true}))
	value, err := db.Get([]byte("zeros"))
	require.NoError(t, err)
	require.Equal(t, make([]byte, 4<<20), value)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.NoError(t, db.Close())
}

// A lyingPolicy makes filters that know of no key that they were given.
type lyingPolicy struct{ filterpolicy.Policy }

func (p lyingPolicy) NewBuilder() filterpolicy.Builder { return lyingBuilder{p.Policy.NewBuilder()} }

type lyingBuilder struct{ filterpolicy.Builder }

func (b lyingBuilder) AddHash(h uint64) { b.Builder.AddHash(h ^ 0x5555555555555555) }

// shortPrefix is an extractor of an application's own.
type shortPrefix struct{}

func (shortPrefix) Name() string { return "short" }

func (shortPrefix) Prefix(key []byte) ([]byte, bool) { return key[:min(2, len(key))], len(key) >= 2 }

// A filter of prefixes that denies what is in its file would hide it from lookups and
// scans.
func TestIngestRefusesHostileFiltersOfPrefixes(t *testing.T) {
	honest := storetest.Filter("bloom:16")
	db := stores.OpenDir(t, t.TempDir(), &kv.Options{Prefix: shortPrefix{}, PrefixOnly: true, Filter: honest})
	for _, only := range []bool{true, false} {
		o := &sstable.WriterOptions{Filter: lyingPolicy{honest}, Prefix: shortPrefix{}, PrefixOnly: only}
		path := storetest.IngestFile(t, vfs.OS, filepath.Join(t.TempDir(), "lying"), o, "user/1=one", "user/2=two")
		err := db.Ingest(t.Context(), []string{path}, nil)
		require.ErrorIs(t, err, kv.ErrCorruption)
		require.ErrorContains(t, err, "the filter denies")
	}
	path := storetest.IngestFile(t, vfs.OS, filepath.Join(t.TempDir(), "honest"),
		&sstable.WriterOptions{Filter: honest, Prefix: shortPrefix{}, PrefixOnly: true}, "user/1=one")
	require.NoError(t, db.Ingest(t.Context(), []string{path}, nil))
	value, err := db.Get([]byte("user/1"))
	require.NoError(t, err)
	require.Equal(t, "one", string(value))
	require.NoError(t, db.Close())
}

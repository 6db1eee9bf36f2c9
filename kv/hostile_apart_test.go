package kv

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/compression"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/hostile"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// bombedLog makes a store whose log has n handles, each of a value of 64 KiB of a log's blob file: all of one record,
// or each of a compressed one of its own. It returns the bytes of both files.
func bombedLog(t *testing.T, n int, kind compression.Kind) (dir string, size int) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	db := openDir(t, dir, &Options{SeparateFrom: 50, SeparateAtCommit: true})
	set(t, db, "a", strings.Repeat("value", 100)) // so that the manifest has the features
	num, log := db.values.Files()[0].Num, db.logNum
	from := filepath.Join(t.TempDir(), "bombed")
	db.settle()
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
func TestLogBombsOfValuesApart(t *testing.T) {
	t.Parallel()
	for kind, good := range map[compression.Kind]bool{compression.None: true, compression.Zstd: false} {
		dir, size := bombedLog(t, 1000, kind)
		hostile.Bound{PerByte: 8, Fixed: 16 << 20}.Require(t, size, func() {
			db, err := OpenReadOnly(dir, &Options{CacheSize: -1, MemtableSize: 1 << 20})
			require.NoError(t, err)
			there, err := db.Has([]byte("a"))
			require.NoError(t, err)
			require.Equal(t, good, there)
			require.NoError(t, db.Close())
		})
		_, err := Open(dir, &Options{RecoveryMode: Absolute})
		require.ErrorIs(t, err, ErrCorruption)
		require.ErrorContains(t, err, ".blob at offset 32: a log has a handle")
	}
}

// A log that goes on with handles of a blob file that was listed is damaged: both openings name the file.
func TestALogWithHandlesOfAListedFileIsRefused(t *testing.T) {
	dir, from := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "forged")
	db := openDir(t, dir, &Options{harness: harness.Harness{MinStreamed: 1}})
	require.NoError(t, db.SetReader(t.Context(), []byte("a"), 5000, strings.NewReader(strings.Repeat("v", 5000)), Sync))
	require.NoError(t, db.Flush(t.Context()))
	names := blobNames(t, db)
	require.Len(t, names, 1)
	_, num := manifest.ParseFileName(filepath.Base(names[0]))
	size, err := vfs.OS.Stat(names[0])
	require.NoError(t, err)
	log := db.logNum
	db.settle()
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
		_, err = Open(from, &Options{ReadOnly: readOnly})
		require.ErrorIs(t, err, ErrCorruption)
		require.ErrorContains(t, err, filepath.Base(names[0]))
	}
}

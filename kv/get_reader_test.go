package kv

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

// readValue reads what a reader has, and closes it.
func readValue(t *testing.T, r *ValueReader, err error) string {
	t.Helper()
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	got, err := io.ReadAll(iotest.OneByteReader(r))
	require.NoError(t, err)
	require.EqualValues(t, len(got), r.Size())
	return string(got)
}

// Values in memtables and tables, those that lie apart, compressed and not, expiring ones, and what operands
// come to: all are read as Get has them, from a store, a snapshot and a transaction.
func TestGetReader(t *testing.T) {
	db, _, m := separatedStore(t, vfs.NewMem())
	require.NoError(t, db.Set([]byte("key000"), []byte("in a memtable"), NoSync))
	require.NoError(t, db.Set([]byte("key061"), nil, NoSync))
	m["key000"], m["key061"] = "in a memtable", ""
	s := db.NewSnapshot()
	tx, err := db.Begin(true)
	require.NoError(t, err)
	for i := range 62 {
		k := fmt.Sprintf("key%03d", i)
		for _, from := range []Reader{db, s, tx} {
			r, err := from.GetReader([]byte(k))
			if want, ok := m[k]; ok {
				require.True(t, want == readValue(t, r, err), k)
				continue
			}
			require.ErrorIs(t, err, ErrNotFound)
			require.Nil(t, r)
		}
	}
	require.NoError(t, db.Delete([]byte("key001"), NoSync))
	_, err = db.GetReader([]byte("key001"))
	require.ErrorIs(t, err, ErrNotFound)
	r, err := s.GetReader([]byte("key001"))
	require.Equal(t, m["key001"], readValue(t, r, err))

	require.NoError(t, tx.Set([]byte("key002"), []byte("its own")))
	r, err = tx.GetReader([]byte("key002"))
	require.Equal(t, "its own", readValue(t, r, err))
	require.NoError(t, tx.Merge([]byte("key003"), []byte("its own")))
	r, err = tx.GetReader([]byte("key003"))
	require.Equal(t, m["key003"]+",its own", readValue(t, r, err))
	require.NoError(t, tx.Delete([]byte("key004")))
	_, err = tx.GetReader([]byte("key004"))
	require.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, db.Set([]byte("key059"), nil, NoSync))
	require.ErrorIs(t, tx.Commit(nil), ErrConflict, "what GetReader read was written")
	require.NoError(t, s.Close())
	_, err = s.GetReader([]byte("key001"))
	require.ErrorIs(t, err, ErrClosed)
	_, err = tx.GetReader([]byte("key001"))
	require.ErrorIs(t, err, ErrTxDone)
	require.NoError(t, db.Close())
}

// What a reader needs stays on disk until it is closed, and the value is what it was.
func TestAReaderHoldsItsValue(t *testing.T) {
	fsys := vfs.NewMem()
	db, err := Open("db", &Options{harness: harness.Harness{FS: fsys}, SeparateFrom: 100})
	require.NoError(t, err)
	value := bytes.Repeat([]byte("0123456789abcdef"), 50_000)
	require.NoError(t, db.SetTTL([]byte("k"), value, time.Hour, NoSync))
	require.NoError(t, db.Flush(t.Context()))
	files := requireBlobs(t, db)
	r, err := db.GetReader([]byte("k"))
	require.NoError(t, err)
	part := make([]byte, 1000)
	_, err = io.ReadFull(r, part)
	require.NoError(t, err)
	require.NoError(t, db.Delete([]byte("k"), NoSync))
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	db.cleaner.Wait()
	names, err := fsys.List("db")
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(names), ".blob", "the version is held")
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.True(t, bytes.Equal(value, append(part, rest...)))
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	_, err = r.Read(part)
	require.ErrorIs(t, err, ErrClosed)
	require.Less(t, requireBlobs(t, db), files)
	require.NoError(t, db.Close())
}

func TestAReaderOfAValueOutlivesItsStore(t *testing.T) {
	db, _, _ := separatedStore(t, vfs.NewMem())
	apart, err := db.GetReader([]byte("key059"))
	require.NoError(t, err)
	inline, err := db.GetReader([]byte("key001"))
	require.NoError(t, err)
	require.ErrorIs(t, db.Close(), ErrReadersOpen)
	for _, r := range []*ValueReader{apart, inline} {
		_, err = r.Read(make([]byte, 1))
		require.ErrorIs(t, err, ErrClosed)
		require.NoError(t, r.Close())
	}
	_, err = db.GetReader([]byte("key001"))
	require.ErrorIs(t, err, ErrClosed)
}

// Damage to a later piece of a value is an error when the reader comes to it, with file and offset; what
// came before it is right.
func TestAReaderNamesDamage(t *testing.T) {
	dir := t.TempDir()
	o := &Options{SeparateFrom: 100, Compression: sstable.NoCompression}
	db, err := Open(dir, o)
	require.NoError(t, err)
	value := make([]byte, 1<<20)
	for i := range value {
		value[i] = byte(i * i >> 7)
	}
	require.NoError(t, db.Set([]byte("k"), value, NoSync))
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Close())
	names, err := filepath.Glob(filepath.Join(dir, "*.blob"))
	require.NoError(t, err)
	require.Len(t, names, 1)
	rewrite(t, names[0], flip(700<<10))
	db, err = Open(dir, o)
	require.NoError(t, err)
	r, err := db.GetReader([]byte("k"))
	require.NoError(t, err)
	got, err := io.ReadAll(r)
	require.ErrorIs(t, err, ErrCorruption)
	require.ErrorContains(t, err, names[0])
	require.Len(t, got, 512<<10)
	require.True(t, bytes.Equal(value[:len(got)], got))
	require.NoError(t, r.Close())
	require.NoError(t, db.Close())
}

// What readers of values have read counts as what others read of blob files.
func TestWhatReadersReadIsCounted(t *testing.T) {
	db, err := Open("db", &Options{harness: harness.Harness{FS: vfs.NewMem()}, SeparateFrom: 100})
	require.NoError(t, err)
	value := randomBytes(rand.New(rand.NewPCG(8, 9)), 1<<20)
	require.NoError(t, db.Set([]byte("k"), value, NoSync))
	require.NoError(t, db.Flush(t.Context()))
	db.settle()
	was := db.Metrics().Blobs
	r, err := db.GetReader([]byte("k"))
	require.NoError(t, err)
	_, err = io.ReadFull(r, make([]byte, 10))
	require.NoError(t, err)
	b := db.Metrics().Blobs
	require.EqualValues(t, 1, b.Reads-was.Reads)
	require.Greater(t, b.Read-was.Read, uint64(256<<10))
	require.Less(t, b.Read-was.Read, uint64(257<<10), "a piece")
	_, err = io.Copy(io.Discard, r)
	require.NoError(t, err)
	b = db.Metrics().Blobs
	require.EqualValues(t, 1, b.Reads-was.Reads)
	require.Equal(t, b.LiveBytes, b.Read-was.Read, "all of the record")
	require.NoError(t, r.Close())
	require.NoError(t, db.Close())
}

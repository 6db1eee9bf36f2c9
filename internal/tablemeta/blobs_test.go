package tablemeta

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/stretchr/testify/require"
)

// newWriter returns a writer into db/ of a file system in memory, which knows blob file 1.
func newWriter(t *testing.T, o Separation) (*Writer, vfs.FS) {
	t.Helper()
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("db"))
	num := uint64(9)
	o.ID = func(num uint64) uint64 { return map[uint64]uint64{1: 0xb10b}[num] }
	return &Writer{FS: mem, Dir: "db", Log: slog.New(slog.DiscardHandler), Tombstones: rangedel.NewSet(nil),
		Separation: o, NewNum: func() uint64 { num++; return num },
		Wrap: func(f vfs.WriteFile) vfs.WriteFile { return f }}, mem
}

// readTable returns a reader of a table.
func readTable(t *testing.T, fsys vfs.FS, m *manifest.Table) *sstable.Reader {
	t.Helper()
	name := "db/" + manifest.FileName(manifest.FileTable, m.Num)
	f, err := fsys.Open(name)
	require.NoError(t, err)
	r, err := sstable.NewReader(f, m.Size, &sstable.ReaderOptions{Name: name, ID: m.ID})
	require.NoError(t, err)
	require.NoError(t, r.Verify())
	return r
}

func TestLongValuesGoIntoBlobFiles(t *testing.T) {
	t.Parallel()
	w, mem := newWriter(t, Separation{From: 100, TargetSize: 2000})
	value := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, i) }
	expiring := func(i int) []byte { return append(base.AppendExpiry(nil, uint64(i)), value(i)...) }
	elsewhere := blob.Handle{File: 1, Offset: 32, Length: 500, Size: 480}
	for i := range 200 {
		key := fmt.Appendf(nil, "%03d", i)
		if i == 150 {
			require.NoError(t, w.Cut(key))
		}
		require.NoError(t, w.Add(base.MakeKey(key, 9, base.KindSet), value(i)))
		require.NoError(t, w.Add(base.MakeKey(key, 8, base.KindSetTTL), expiring(i)))
		require.NoError(t, w.Add(base.MakeKey(key, 7, base.KindMerge), value(i)))
		require.NoError(t, w.Add(base.MakeKey(key, 6, base.KindDelete), nil))
		if i == 120 {
			require.NoError(t, w.Add(base.MakeKey(key, 5, base.KindSetSeparated), elsewhere.Append(nil)))
		}
	}
	tables, err := w.Finish()
	require.NoError(t, err)
	require.Len(t, tables, 2)
	require.Greater(t, len(w.Blobs()), 3)

	readers := map[uint64]*blob.Reader{}
	counted, records := map[uint64]manifest.BlobRef{}, uint64(0)
	for _, b := range w.Blobs() {
		f, err := mem.Open("db/" + b.Name())
		require.NoError(t, err)
		r, err := blob.NewReader(f, b.Size, blob.ReaderOptions{Name: b.Name(), ID: b.ID, Size: b.Size})
		require.NoError(t, err)
		require.NoError(t, r.Verify(b.Num, func(h blob.Handle, rec blob.Record) error {
			require.Equal(t, len(rec.Key), 3)
			require.Equal(t, rec.Seq == 8, rec.Expiry > 0)
			return nil
		}))
		readers[b.Num] = r
		records += b.Records
	}
	require.EqualValues(t, 200, records, "two for each length from 100 on")
	for i := range tables {
		for _, ref := range tables[i].Blobs {
			sum := counted[ref.Num]
			counted[ref.Num] = manifest.BlobRef{Num: ref.Num, Records: sum.Records + ref.Records,
				Bytes: sum.Bytes + ref.Bytes}
		}
		it := readTable(t, mem, &tables[i]).NewIter(sstable.IterOptions{})
		for ok := it.First(); ok; ok = it.Next() {
			n, k := 0, it.Key()
			_, err := fmt.Sscan(string(k.User), &n)
			require.NoError(t, err)
			if !k.Kind().Separated() {
				require.True(t, n < 100 || k.SeqNum() < 8)
				continue
			}
			h, expiry, err := blob.HandleOf(k.Kind(), it.Value())
			require.NoError(t, err)
			if h.File == 1 {
				require.Equal(t, elsewhere, h, "a handle is passed on")
				continue
			}
			require.Equal(t, k.SeqNum() == 8, k.Kind() == base.KindSetTTLSeparated)
			if k.SeqNum() == 8 {
				require.EqualValues(t, n, expiry)
			}
			got, err := readers[h.File].AppendValue(nil, k.User, h)
			require.NoError(t, err)
			require.Equal(t, value(n), got)
		}
		require.NoError(t, it.Error())
	}
	require.Equal(t, manifest.BlobRef{Num: 1, Records: 1, Bytes: 500}, counted[1])
	for _, b := range w.Blobs() {
		require.Equal(t, manifest.BlobRef{Num: b.Num, Records: b.Records, Bytes: uint64(b.Size) - blob.MinSize},
			counted[b.Num], "every byte of a new file is referred to")
	}
}

func TestWithoutAThresholdNothingIsSeparated(t *testing.T) {
	t.Parallel()
	w, mem := newWriter(t, Separation{})
	require.NoError(t, w.Add(base.MakeKey([]byte("k"), 1, base.KindSet), make([]byte, 100_000)))
	tables, err := w.Finish()
	require.NoError(t, err)
	require.Empty(t, w.Blobs())
	require.Nil(t, tables[0].Blobs)
	names, err := mem.List("db")
	require.NoError(t, err)
	require.Equal(t, []string{"000010.sst"}, names)
}

func TestAHandleOfAnUnknownFileEndsATable(t *testing.T) {
	t.Parallel()
	w, _ := newWriter(t, Separation{})
	h := blob.Handle{File: 2, Offset: 32, Length: 500, Size: 480}
	require.NoError(t, w.Add(base.MakeKey([]byte("k"), 1, base.KindSetSeparated), h.Append(nil)))
	_, err := w.Finish()
	require.ErrorContains(t, err, "blob file 2")
}

// A table that refers to a gibibyte is full, however small it is.
func TestATableIsFullOfReferences(t *testing.T) {
	t.Parallel()
	w, _ := newWriter(t, Separation{})
	w.TargetSize = 1 << 20
	for i := range 4 {
		require.False(t, w.Full())
		h := blob.Handle{File: 1, Ordinal: uint64(i), Offset: 32 + int64(i)<<28, Length: 1 << 28, Size: 1<<28 - 100}
		require.NoError(t, w.Add(base.MakeKey([]byte{byte(i)}, 1, base.KindSetSeparated), h.Append(nil)))
	}
	require.True(t, w.Full())
	require.NoError(t, w.Cut([]byte{4}))
	require.False(t, w.Full())
	tables, err := w.Finish()
	require.NoError(t, err)
	require.Equal(t, []manifest.BlobRef{{Num: 1, Records: 4, Bytes: 1 << 30}}, tables[0].Blobs)
}

// A failingFile fails its n-th call.
type failingFile struct {
	vfs.WriteFile
	calls *int
}

var errDisk = errors.New("disk")

func (f failingFile) fails() error {
	if *f.calls--; *f.calls == 0 {
		return errDisk
	}
	return nil
}

func (f failingFile) Write(b []byte) (int, error) {
	if err := f.fails(); err != nil {
		return 0, err
	}
	return f.WriteFile.Write(b)
}

func (f failingFile) Sync() error { return errors.Join(f.fails(), f.WriteFile.Sync()) }

// Whatever fails, Abort leaves no file.
func TestAbortRemovesTablesAndBlobFiles(t *testing.T) {
	t.Parallel()
	none, err := filterpolicy.Parse("none")
	require.NoError(t, err)
	for fail := 1; ; fail++ {
		w, mem := newWriter(t, Separation{From: 10, TargetSize: 1000})
		w.Options = &sstable.WriterOptions{Filter: none}
		calls := fail
		w.Wrap = func(f vfs.WriteFile) vfs.WriteFile { return failingFile{f, &calls} }
		write := func() error {
			for i := range 30 {
				key := fmt.Appendf(nil, "%03d", i)
				if i == 20 {
					if err := w.Cut(key); err != nil {
						return err
					}
				}
				if err := w.Add(base.MakeKey(key, 9, base.KindSet), make([]byte, 100)); err != nil {
					return err
				}
			}
			_, err := w.Finish()
			return err
		}
		if err := write(); err == nil {
			require.Greater(t, fail, 4)
			return
		} else {
			require.ErrorIs(t, err, errDisk)
		}
		w.Abort()
		names, err := mem.List("db")
		require.NoError(t, err)
		require.Empty(t, names)
	}
}

package tablemeta

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/stretchr/testify/require"
)

// blobOf returns a reader of a blob file of db/.
func blobOf(t *testing.T, fsys vfs.FS, num, id uint64) *blob.Reader {
	t.Helper()
	name := "db/" + manifest.FileName(manifest.FileBlob, num)
	f, err := fsys.Open(name)
	require.NoError(t, err)
	size, err := f.Size()
	require.NoError(t, err)
	r, err := blob.NewReader(f, size, blob.ReaderOptions{Name: name, ID: id})
	require.NoError(t, err)
	return r
}

// writeCandidate writes blob file 1 of db/, whose record i has key i, sequence number i and, if that is odd, expiry i.
// Its values differ in length, up to some that have several pieces.
func writeCandidate(t *testing.T, fsys vfs.FS) (entries []base.InternalKey, values [][]byte) {
	t.Helper()
	f, err := fsys.Create("db/" + manifest.FileName(manifest.FileBlob, 1))
	require.NoError(t, err)
	w := blob.NewWriter(f, blob.WriterOptions{Num: 1, ID: 0xb10b})
	for i := range 60 {
		kind, expiry, value := base.KindSetSeparated, uint64(0), []byte(nil)
		if i%2 == 1 {
			kind, expiry = base.KindSetTTLSeparated, uint64(i)
			value = base.AppendExpiry(nil, expiry)
		}
		key := fmt.Appendf(nil, "%03d", i)
		h, err := w.Add(key, base.SeqNum(i), expiry, candidateValue(i))
		require.NoError(t, err)
		entries = append(entries, base.MakeKey(key, base.SeqNum(i), kind))
		values = append(values, h.Append(value))
	}
	_, err = w.Finish()
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return entries, values
}

func candidateValue(i int) []byte {
	v := bytes.Repeat([]byte{byte(i)}, i*i)
	if i%20 == 19 { // that is not compressed, in several pieces
		v = make([]byte, 300_000+i)
		_, _ = rand.NewChaCha8([32]byte{byte(i)}).Read(v)
	}
	return v
}

// Records of a candidate are copied, into the files to which new values go too; other handles pass.
func TestRecordsOfCandidatesAreCopied(t *testing.T) {
	t.Parallel()
	w, mem := newWriter(t, Separation{From: 100, TargetSize: 100_000, Candidates: map[uint64]bool{1: true}})
	w.Separation.ID = func(num uint64) uint64 { return map[uint64]uint64{1: 0xb10b, 2: 0x0ce}[num] }
	entries, values := writeCandidate(t, mem)
	candidate := blobOf(t, mem, 1, 0xb10b)
	w.Separation.Open = candidate.OpenStream
	elsewhere := blob.Handle{File: 2, Offset: 32, Length: 500, Size: 480}
	for i, k := range entries {
		if i%3 == 2 {
			continue // it is garbage
		}
		require.NoError(t, w.Add(k, values[i]))
		newer := append(bytes.Clone(k.User), 'n')
		require.NoError(t, w.Add(base.MakeKey(newer, 99, base.KindSet), make([]byte, 200)))
		require.NoError(t, w.Add(base.MakeKey(append(newer, 'o'), 99, base.KindSetSeparated), elsewhere.Append(nil)))
	}
	tables, err := w.Finish()
	require.NoError(t, err)
	require.Len(t, tables, 1)
	readers := map[uint64]*blob.Reader{}
	records, bytesOf := uint64(0), uint64(0)
	for _, b := range w.Blobs() {
		readers[b.Num] = blobOf(t, mem, b.Num, b.ID)
		require.NoError(t, readers[b.Num].Verify(b.Num, func(blob.Handle, blob.Record) error { return nil }))
		records += b.Records
		bytesOf += uint64(b.Size) - blob.MinSize
	}
	require.Greater(t, len(readers), 2)
	require.EqualValues(t, 80, records)
	require.Equal(t, manifest.BlobRef{Num: 2, Records: 40, Bytes: 20_000}, tables[0].Blobs[0])
	require.Len(t, tables[0].Blobs, 1+len(readers), "nothing refers to the candidate")

	it := readTable(t, mem, &tables[0]).NewIter(sstable.IterOptions{})
	copied := uint64(0)
	for ok := it.First(); ok; ok = it.Next() {
		h, expiry, err := blob.HandleOf(it.Key().Kind(), it.Value())
		require.NoError(t, err)
		if h.File == 2 {
			require.Equal(t, elsewhere, h)
			continue
		}
		s, err := readers[h.File].OpenStream(it.Key().User, h)
		require.NoError(t, err)
		if len(it.Key().User) > 3 {
			require.EqualValues(t, 99, s.Record().Seq)
			continue
		}
		i, err := strconv.Atoi(string(it.Key().User))
		require.NoError(t, err)
		require.EqualValues(t, i, s.Record().Seq, "it is that of the write")
		require.Equal(t, expiry, s.Record().Expiry)
		require.Equal(t, i%2*i, int(expiry))
		got, err := readers[h.File].AppendValue(nil, it.Key().User, h)
		require.NoError(t, err)
		require.True(t, bytes.Equal(candidateValue(i), got))
		copied += uint64(h.Length)
	}
	require.NoError(t, it.Error())
	require.Equal(t, copied, w.Relocated())
	require.Greater(t, bytesOf, copied)
}

// A record that is damaged, or cannot be read, is the candidate's fault. Nothing of the new files is left.
func TestACandidateThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	for at := 40; ; at += 20_000 {
		w, mem := newWriter(t, Separation{TargetSize: 100_000, Candidates: map[uint64]bool{1: true}})
		entries, values := writeCandidate(t, mem)
		name := "db/" + manifest.FileName(manifest.FileBlob, 1)
		f, err := mem.Open(name)
		require.NoError(t, err)
		size, err := f.Size()
		require.NoError(t, err)
		b := make([]byte, size)
		_, err = f.ReadAt(b, 0)
		require.NoError(t, err)
		if at >= len(b) {
			return
		}
		b[at] ^= 1
		require.NoError(t, vfs.ReplaceFile(mem, name, b))
		w.Separation.Open = blobOf(t, mem, 1, 0xb10b).OpenStream
		for i, k := range entries {
			if err = w.Add(k, values[i]); err != nil {
				break
			}
		}
		require.ErrorIs(t, err, base.ErrCorruption)
		v, ok := errors.AsType[*CandidateError](err)
		require.True(t, ok)
		require.EqualValues(t, 1, v.Num)
		require.ErrorContains(t, err, name)
		w.Abort()
		names, err := mem.List("db")
		require.NoError(t, err)
		require.Equal(t, []string{"000001.blob"}, names)
	}
}

// A failure to write is not said to be one of the candidate.
func TestAFullDiskIsNotTheCandidatesFault(t *testing.T) {
	t.Parallel()
	w, mem := newWriter(t, Separation{TargetSize: 100_000, Candidates: map[uint64]bool{1: true}})
	entries, values := writeCandidate(t, mem)
	w.Separation.Open = blobOf(t, mem, 1, 0xb10b).OpenStream
	calls := 2
	w.Wrap = func(f vfs.WriteFile) vfs.WriteFile { return failingFile{f, &calls} }
	var err error
	for i := 0; i < len(entries) && err == nil; i++ {
		err = w.Add(entries[i], values[i])
	}
	require.ErrorIs(t, err, errDisk)
	_, ok := errors.AsType[*CandidateError](err)
	require.False(t, ok)
	w.Abort()
}

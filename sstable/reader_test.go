package sstable_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/exactranges"
	"github.com/siftkv/siftkv/internal/rangedel"
	internal "github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/sstable"
	"github.com/stretchr/testify/require"
)

func openBytes(tb testing.TB, data []byte, o *sstable.ReaderOptions) *sstable.Reader {
	tb.Helper()
	r, err := sstable.NewReader(bytes.NewReader(data), int64(len(data)), o)
	require.NoError(tb, err)
	return r
}

// A version is an entry as a store writes it.
type version struct {
	key   string
	seq   base.SeqNum
	kind  base.Kind
	value string
}

// storeFile is a file as a store writes it.
func storeFile(tb testing.TB, o *internal.WriterOptions, vs []version, ts ...rangedel.Tombstone) []byte {
	tb.Helper()
	var buf bytes.Buffer
	w := internal.NewWriter(&buf, o)
	w.KnowBlobs(func(uint64) uint64 { return 1 })
	for _, v := range vs {
		require.NoError(tb, w.Add(base.MakeKey([]byte(v.key), v.seq, v.kind), []byte(v.value)))
	}
	for _, t := range ts {
		require.NoError(tb, w.AddTombstone(t))
	}
	_, err := w.Finish()
	require.NoError(tb, err)
	return buf.Bytes()
}

func TestAStandaloneFile(t *testing.T) {
	var buf bytes.Buffer
	w := sstable.NewWriter(&buf, nil)
	for i := range 5000 {
		require.NoError(t, w.Set(fmt.Appendf(nil, "k%05d", i), fmt.Appendf(nil, "value %d", i)))
	}
	require.NoError(t, w.Delete([]byte("l")))
	require.NoError(t, w.DeleteRange([]byte("k00040"), []byte("k00050")))
	size := w.Size()
	info, err := w.Finish()
	require.NoError(t, err)
	require.InEpsilon(t, info.Size, size, 0.2)
	require.Error(t, w.Set([]byte("m"), nil), "a finished writer takes no more")

	r := openBytes(t, buf.Bytes(), &sstable.ReaderOptions{ID: info.ID, TailSize: info.TailSize})
	v, err := r.Get([]byte("k00042"))
	require.NoError(t, err, "a file's range tombstones hide nothing of the file")
	require.Equal(t, "value 42", string(v))
	for _, absent := range []string{"", "k00042x", "k99999", "l", "z"} {
		_, err = r.Get([]byte(absent))
		require.ErrorIs(t, err, sstable.ErrNotFound, absent)
	}
	n := 0
	for e, err := range r.All() {
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("value %d", n), string(e.Value))
		n++
	}
	require.Equal(t, 5000, n)
	require.NoError(t, r.Verify())
	again, err := r.Info()
	require.NoError(t, err)
	require.Equal(t, info.Entries, again.Entries)
	require.Equal(t, *r.Properties(), again.Properties)
	require.NoError(t, r.FilterError())
	require.True(t, r.HasFilter())
	filter, index := r.PinnedBytes()
	require.Positive(t, filter)
	require.Positive(t, index)

	it := r.NewIter(sstable.IterOptions{})
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	for _, absent := range []string{"k00042", "z"} {
		_, err = r.Get([]byte(absent))
		require.ErrorIs(t, err, sstable.ErrClosed)
	}
	require.ErrorIs(t, r.Verify(), sstable.ErrClosed)
	require.False(t, it.First())
	require.ErrorIs(t, it.Error(), sstable.ErrClosed)
}

func TestKeysOutOfOrderAreRefused(t *testing.T) {
	w := sstable.NewWriter(&bytes.Buffer{}, nil)
	require.NoError(t, w.Set([]byte("b"), nil))
	require.ErrorIs(t, w.Set([]byte("b"), nil), sstable.ErrOrder)
	_, err := w.Finish()
	require.ErrorIs(t, err, sstable.ErrOrder)
}

func TestAPrefixFilterIsAsked(t *testing.T) {
	fixed, err := filterpolicy.ParsePrefix("fixed:4")
	require.NoError(t, err)
	var buf bytes.Buffer
	w := sstable.NewWriter(&buf, &sstable.WriterOptions{Prefix: fixed, PrefixOnly: true})
	require.NoError(t, w.Set([]byte("usr/1"), nil))
	_, err = w.Finish()
	require.NoError(t, err)
	r := openBytes(t, buf.Bytes(), &sstable.ReaderOptions{Prefix: fixed})
	require.True(t, r.HasPrefixFilter())
	require.True(t, r.MayContainPrefix(filterpolicy.Hash([]byte("usr/"))))
	require.False(t, r.MayContainPrefix(filterpolicy.Hash([]byte("grp/"))))
	require.False(t, openBytes(t, buf.Bytes(), nil).HasPrefixFilter())
}

func TestTheNewestVersionDecides(t *testing.T) {
	later := string(base.AppendExpiry(nil, uint64(time.Now().Add(time.Hour).UnixMicro())))
	r := openBytes(t, storeFile(t, nil, []version{
		{"counter", 9, base.KindMerge, "+1"}, {"counter", 4, base.KindSet, "40"},
		{"deleted", 9, base.KindDelete, ""}, {"deleted", 4, base.KindSet, "x"},
		{"expired", 7, base.KindSetTTL, string(base.AppendExpiry(nil, 1_000_000)) + "gone since 1970"},
		{"expired", 3, base.KindSet, "hidden"},
		{"lasting", 7, base.KindSetTTL, later + "for an hour"},
		{"updated", 9, base.KindSet, "new"}, {"updated", 4, base.KindSet, "old"},
		{"veiled", 6, base.KindSet, "x"},
	}, rangedel.Tombstone{Start: []byte("v"), End: []byte("w"), Seq: 7}), &sstable.ReaderOptions{Name: "a file"})
	for key, want := range map[string]string{"lasting": "for an hour", "updated": "new"} {
		v, err := r.Get([]byte(key))
		require.NoError(t, err)
		require.Equal(t, want, string(v))
	}
	for _, key := range []string{"deleted", "expired", "veiled"} {
		_, err := r.Get([]byte(key))
		require.ErrorIs(t, err, sstable.ErrNotFound, key)
	}
	_, err := r.Get([]byte("counter"))
	require.ErrorIs(t, err, sstable.ErrMergeOperand)
	require.ErrorContains(t, err, `a file, key "counter"`)
	entries := 0
	for e, err := range r.All() {
		require.ErrorIs(t, err, sstable.ErrMergeOperand, "the first key has operands: the sequence ends there")
		require.Zero(t, e)
		entries++
	}
	require.Equal(t, 1, entries)
	it := r.NewIter(sstable.IterOptions{})
	require.True(t, it.Last())
	require.Equal(t, "updated", string(it.Key()))
	require.True(t, it.Prev())
	require.Equal(t, "for an hour", string(it.Value()))
	require.False(t, it.Prev())
	require.False(t, it.Valid())
	require.ErrorIs(t, it.Error(), sstable.ErrMergeOperand)
	require.True(t, it.SeekGE([]byte("d")), "a seek goes on")
	require.Equal(t, "lasting", string(it.Key()))
	require.NoError(t, it.Error())
}

// A value in a blob file is its store's; one that has expired is nobody's.
func TestValuesInBlobFilesAreTheStores(t *testing.T) {
	handle := string(blob.Handle{File: 14, Ordinal: 3, Offset: 4096, Length: 100, Size: 80}.Append(nil))
	later := string(base.AppendExpiry(nil, uint64(time.Now().Add(time.Hour).UnixMicro())))
	r := openBytes(t, storeFile(t, nil, []version{
		{"apart", 7, base.KindSetSeparated, handle},
		{"expired", 7, base.KindSetTTLSeparated, string(base.AppendExpiry(nil, 1_000_000)) + handle},
		{"lasting", 7, base.KindSetTTLSeparated, later + handle},
	}), &sstable.ReaderOptions{Name: "a file"})
	for _, key := range []string{"apart", "lasting"} {
		_, err := r.Get([]byte(key))
		require.ErrorIs(t, err, sstable.ErrValueSeparated)
		require.ErrorContains(t, err, `a file, key "`+key+`": record 3 of file 14`)
	}
	_, err := r.Get([]byte("expired"))
	require.ErrorIs(t, err, sstable.ErrNotFound)
	it := r.NewIter(sstable.IterOptions{})
	require.False(t, it.First())
	require.ErrorIs(t, it.Error(), sstable.ErrValueSeparated)
	require.Equal(t, sstable.BlobRefs{{Num: 14, ID: 1, Records: 3, Bytes: 300}}, r.Properties().Blobs)
}

// A closed reader says so, whether its file is closed with it or not.
func TestInfoOfClosedReader(t *testing.T) {
	r := openBytes(t, storeFile(t, nil, nil), nil)
	_, err := r.Info()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	_, err = r.Info()
	require.ErrorIs(t, err, sstable.ErrClosed)
}

// Errors of a reader without a name have no hole in its place.
func TestErrorsWithoutName(t *testing.T) {
	file := storeFile(t, nil, []version{{"a", 7, base.KindMerge, "operand"}})
	r := openBytes(t, file, nil)
	_, err := r.Get([]byte("a"))
	require.ErrorContains(t, err, `operand: the file, key "a"`)
	_, err = sstable.NewReader(bytes.NewReader(file), int64(len(file))+1, nil)
	require.ErrorContains(t, err, "read the file at offset 0: ")
}

func TestAReaderAnswersForRanges(t *testing.T) {
	var file bytes.Buffer
	w := sstable.NewWriter(&file, &sstable.WriterOptions{RangeFilter: exactranges.Policy{}})
	for _, k := range []string{"a", "m", "z"} {
		require.NoError(t, w.Set([]byte(k), nil))
	}
	info, err := w.Finish()
	require.NoError(t, err)
	require.EqualValues(t, 3, info.RangeFilterKeys)
	for _, policy := range []filterpolicy.RangePolicy{exactranges.Policy{}, nil} {
		r := openBytes(t, file.Bytes(), &sstable.ReaderOptions{RangeFilter: policy})
		require.Equal(t, policy != nil, r.HasRangeFilter())
		require.Equal(t, policy == nil, errors.Is(r.RangeFilterError(), filterpolicy.ErrUnknownFamily))
		require.Equal(t, policy == nil, r.MayContainRange([]byte("b"), []byte("m")), "it says maybe if it cannot tell")
		require.True(t, r.MayContainRange([]byte("b"), []byte("n")))
		require.True(t, r.MayContainRange([]byte("n"), nil))
		require.False(t, r.MayContainRange(nil, []byte("a")))
		require.NoError(t, r.Verify())
	}
}

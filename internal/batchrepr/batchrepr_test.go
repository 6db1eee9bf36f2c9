package batchrepr

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/hostile"
	"github.com/siftkv/siftkv/internal/manifest"
)

// everyKind has an entry of each kind, and entries without bytes.
func everyKind() *Writer {
	w := &Writer{}
	w.Add(base.KindSet, []byte("key"), []byte("value"))
	w.Add(base.KindSet, nil, nil)
	w.Add(base.KindDelete, []byte("gone"), nil)
	w.Add(base.KindRangeDelete, []byte("a"), []byte("\x01f"))
	w.Add(base.KindRangeDelete, nil, []byte{0})
	w.Add(base.KindSet, []byte{0xff, 0}, make([]byte, 130))
	w.Add(base.KindMerge, []byte("counter"), []byte("12345678"))
	w.Add(base.KindMerge, nil, nil)
	w.Add(base.KindSetTTL, []byte("session"), base.AppendExpiry(nil, 7), []byte("value")...)
	h := blob.Handle{File: 3, Ordinal: 2, Offset: 1 << 33, Length: 1 << 20, Size: 1<<20 - 30}
	w.Add(base.KindSetSeparated, []byte("page"), h.Append(nil))
	w.Add(base.KindSetTTLSeparated, []byte("cached page"), h.Append(base.AppendExpiry(nil, 7)))
	return w
}

// shortExpiry is a record that no store writes.
func shortExpiry() *Writer {
	w := &Writer{}
	w.Add(base.KindSetTTL, []byte("key"), []byte("1234567"))
	return w
}

// readAll returns the keys of a record, as texts.
func readAll(r Reader) (keys []string, err error) {
	for {
		e, ok, err := r.Next()
		if err != nil || !ok {
			return keys, err
		}
		keys = append(keys, e.Key.String())
	}
}

func TestAppend(t *testing.T) {
	var w, empty Writer
	w.Append(&empty)
	require.Zero(t, w.Size())
	all := everyKind()
	w.Append(all)
	require.Equal(t, all.Seal(3), w.Seal(3))
	require.Equal(t, *all, Writer{RangeDeletes: w.RangeDeletes, Features: w.Features, data: w.data, count: w.count})
	w.Append(&w)
	all.Append(&empty)
	one := Writer{}
	one.Add(base.KindDelete, []byte("k"), nil)
	w.Append(&one)
	require.Equal(t, 2*all.Len()+1, w.Len())
	require.Equal(t, 2*all.RangeDeletes, w.RangeDeletes)
	require.NoError(t, check(w.Seal(3)))
	require.Equal(t, append(append(slices.Clone(all.Record()), all.Record()[HeaderSize:]...),
		one.Record()[HeaderSize:]...)[HeaderSize:], w.Record()[HeaderSize:])
	all.Reset()
	all.Append(&one)
	require.Equal(t, one.Seal(1), all.Seal(1))
	require.Zero(t, all.Features)
}

func check(record []byte) error {
	for _, err := range All(record) {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestReaderReturnsWhatWasAdded(t *testing.T) {
	w := everyKind()
	require.Equal(t, 11, w.Len())
	record := w.Seal(5)
	require.Equal(t, record, w.Record())
	require.Len(t, record, w.Size())
	r, err := NewReader(record)
	require.NoError(t, err)
	require.Equal(t, base.SeqNum(5), r.Seq())
	require.Equal(t, 11, r.Len())
	keys, err := readAll(r)
	require.NoError(t, err)
	require.Equal(t, []string{`"key"#5,set`, `""#6,set`, `"gone"#7,delete`, `"a"#8,range-delete`,
		`""#9,range-delete`, `"\xff\x00"#10,set`}, keys[:6])
	handle := "\x03\x02\x80\x80\x80\x80\x20\x80\x80\x40\xe2\xff\x3f"
	var values []string
	for e, err := range All(record) {
		require.NoError(t, err)
		values = append(values, string(e.Value))
	}
	require.Equal(t, []string{"value", "", "", "\x01f", "\x00", string(make([]byte, 130)), "12345678", "",
		"\x07\x00\x00\x00\x00\x00\x00\x00value", handle, "\x07\x00\x00\x00\x00\x00\x00\x00" + handle}, values)
	w.Reset()
	require.Zero(t, w.Len())
	require.Zero(t, w.Size())
	require.GreaterOrEqual(t, w.Cap(), len(record))
}

// Memory that was given away is never written to again, and memory that was not is used again.
func TestGive(t *testing.T) {
	w := &Writer{}
	w.Add(base.KindSet, []byte("key"), []byte("value"))
	record := w.Seal(1)
	w.Reset()
	w.Add(base.KindSet, []byte("KEY"), []byte("VALUE"))
	require.Same(t, &record[0], &w.Seal(1)[0])
	w.Give()
	want := slices.Clone(record[HeaderSize:])
	w.Reset()
	w.Add(base.KindSet, []byte("key"), []byte("value"))
	w.Seal(2)
	require.Equal(t, want, record[HeaderSize:])
}

func TestAfterReadsTheRest(t *testing.T) {
	w := &Writer{}
	var before Mark
	require.Equal(t, before, w.End())
	w.Add(base.KindSet, []byte("a"), nil)
	w.Add(base.KindDelete, []byte("b"), nil)
	keys, err := readAll(w.After(before, 10))
	require.NoError(t, err)
	require.Equal(t, []string{`"a"#10,set`, `"b"#11,delete`}, keys)
	m := w.End()
	w.Add(base.KindSet, []byte("c"), nil)
	keys, err = readAll(w.After(m, 12))
	require.NoError(t, err)
	require.Equal(t, []string{`"c"#12,set`}, keys)
	require.Equal(t, uint32(3), w.End().Count)
}

func TestEveryTruncationIsAnError(t *testing.T) {
	record := everyKind().Seal(5)
	require.NoError(t, check(record))
	for n := range record {
		require.ErrorIs(t, check(record[:n]), ErrMalformed)
	}
	require.ErrorIs(t, check(append(slices.Clone(record), 0)), ErrMalformed)
	require.ErrorIs(t, check(shortExpiry().Seal(1)), ErrMalformed)
}

func TestKindsOfLaterVersionsAreRefused(t *testing.T) {
	record := everyKind().Seal(5)
	for _, kind := range []byte{7, 8, 255} {
		later := slices.Clone(record)
		later[HeaderSize] = kind
		require.ErrorIs(t, check(later), ErrMalformed)
		require.ErrorIs(t, check(later), manifest.ErrNewerFormat)
	}
}

// What stands in the place of a handle has to be one.
func TestHandlesAreChecked(t *testing.T) {
	h := blob.Handle{File: 3, Offset: 100, Length: 50, Size: 20}.Append(nil)
	for _, kind := range []base.Kind{base.KindSetSeparated, base.KindSetTTLSeparated} {
		whole := h
		if kind.Expires() {
			whole = append(base.AppendExpiry(nil, 7), h...)
		}
		for n := range len(whole) + 2 {
			var w Writer
			w.Add(kind, []byte("k"), append(slices.Clone(whole), 0)[:n])
			if n == len(whole) {
				require.NoError(t, check(w.Seal(1)))
			} else {
				require.ErrorIs(t, check(w.Seal(1)), ErrMalformed, "%s of %d bytes", kind, n)
			}
		}
	}
}

func TestHostileRecords(t *testing.T) {
	for _, w := range []*Writer{everyKind(), shortExpiry()} {
		for mutant := range hostile.Mutants(slices.Clone(w.Seal(77)), 1000) {
			hostile.Bound{Fixed: 8 << 10}.Require(t, len(mutant), func() { _ = check(mutant) })
		}
	}
}

// FuzzReader reads any bytes as a record.
func FuzzReader(f *testing.F) {
	record := everyKind().Seal(77)
	f.Add(slices.Clone(record))
	f.Add(slices.Clone(record[:20]))
	f.Add(append(slices.Clone(record), 1))
	f.Add(shortExpiry().Seal(1))
	f.Add((&Writer{data: make([]byte, HeaderSize)}).Seal(base.MaxSeqNum))
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0})
	f.Fuzz(func(t *testing.T, record []byte) {
		if check(record) != nil {
			return
		}
		r, err := NewReader(record)
		require.NoError(t, err)
		entries, bytes := r.Len(), 0
		for {
			e, ok, err := r.Next()
			require.NoError(t, err)
			if !ok {
				break
			}
			bytes += len(e.Key.User) + len(e.Value)
			require.LessOrEqual(t, e.Key.SeqNum(), base.MaxSeqNum)
		}
		require.LessOrEqual(t, uint64(bytes)+2*uint64(entries), uint64(len(record)))
	})
}

package kv

import (
	"encoding/hex"
	"path/filepath"
	"testing"

	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/stretchr/testify/require"
)

func goldenBatch(tb testing.TB) *Batch {
	tb.Helper()
	b := &Batch{}
	require.NoError(tb, b.Set([]byte("key"), []byte("value")))
	require.NoError(tb, b.Set(nil, nil))
	require.NoError(tb, b.Delete([]byte("gone")))
	require.NoError(tb, b.DeleteRange([]byte("a"), []byte("f")))
	require.NoError(tb, b.DeleteRange(nil, nil))
	require.NoError(tb, b.Set([]byte{0xff, 0}, make([]byte, 130)))
	return b
}

func TestGoldenBatch(t *testing.T) {
	record := goldenBatch(t).repr.Seal(0x123456)
	golden.File(t, filepath.Join("testdata", "batch.golden"), hex.Dump(record))

	type write struct{ key, value string }
	var writes []write
	for e, err := range batchrepr.All(record) {
		require.NoError(t, err)
		writes = append(writes, write{e.Key.String(), string(e.Value)})
	}
	require.Equal(t, []write{
		{`"key"#1193046,set`, "value"},
		{`""#1193047,set`, ""},
		{`"gone"#1193048,delete`, ""},
		{`"a"#1193049,range-delete`, "\x01f"},
		{`""#1193050,range-delete`, "\x00"},
		{`"\xff\x00"#1193051,set`, string(make([]byte, 130))},
	}, writes)
}

func TestBatchIsReused(t *testing.T) {
	db := openMem(t, nil)
	b := db.NewBatch()
	require.True(t, b.Empty())
	require.NoError(t, b.Commit(nil), "nothing to do")
	require.NoError(t, b.Set([]byte("a"), []byte("1")))
	require.NoError(t, b.DeleteRange([]byte("z"), []byte("y")))
	require.Equal(t, 1, b.Len(), "an empty range is no write")
	require.False(t, b.Empty())
	b.Reset()
	require.Zero(t, b.Len())
	require.NoError(t, b.Set([]byte("b"), []byte("2")))
	requireContents(t, model{}, db)
	require.NoError(t, b.Commit(nil))
	requireContents(t, model{"b": "2"}, db)
	b.Reset()
	require.NoError(t, b.Commit(nil))
	requireContents(t, model{"b": "2"}, db)
}

func TestLaterWritesOfABatchWin(t *testing.T) {
	db := openMem(t, nil)
	set(t, db, "c", "old")
	b := db.NewBatch()
	require.NoError(t, b.Set([]byte("a"), []byte("1")))
	require.NoError(t, b.Set([]byte("a"), []byte("2")))
	require.NoError(t, b.Set([]byte("b"), []byte("1")))
	require.NoError(t, b.DeleteRange([]byte("b"), []byte("d")))
	require.NoError(t, b.Set([]byte("bb"), []byte("after")))
	require.NoError(t, b.Delete([]byte("d")))
	require.NoError(t, b.Set([]byte("d"), []byte("after")))
	require.NoError(t, b.Commit(nil))
	want := model{"a": "2", "bb": "after", "d": "after"}
	requireContents(t, want, db)
	require.NoError(t, db.Flush())
	requireContents(t, want, db)
	require.EqualValues(t, 8, db.Metrics().Writes)
}

func TestErrorsOfABatchStick(t *testing.T) {
	t.Parallel()
	db := openMem(t, nil)
	long := make([]byte, MaxKeySize+1)
	huge := tooLargeValue()
	for name, write := range map[string]func(b *Batch) error{
		"key of Set":           func(b *Batch) error { return b.Set(long, nil) },
		"value of Set":         func(b *Batch) error { return b.Set(nil, huge) },
		"key of Delete":        func(b *Batch) error { return b.Delete(long) },
		"start of DeleteRange": func(b *Batch) error { return b.DeleteRange(long, nil) },
		"end of DeleteRange":   func(b *Batch) error { return b.DeleteRange(nil, long) },
		"bytes of the batch": func(b *Batch) error {
			b.repr.Arena = MaxBatchSize - 1
			return b.Set([]byte("k"), []byte("v"))
		},
		"ranges of the batch": func(b *Batch) error {
			b.repr.Arena = MaxBatchSize - memtable.TombstoneSize(0, 0)
			return b.DeleteRange(nil, nil)
		},
	} {
		b := db.NewBatch()
		require.NoError(t, b.Set([]byte("a"), nil))
		require.ErrorIs(t, write(b), ErrTooLarge, name)
		require.ErrorIs(t, b.Commit(nil), ErrTooLarge, name)
		require.ErrorIs(t, b.Commit(Async), ErrTooLarge, "it sticks")
		requireContents(t, model{}, db)
		b.Reset()
		require.NoError(t, b.Commit(nil))
	}
	require.ErrorIs(t, db.Set(long, nil, nil), ErrTooLarge)
	require.ErrorContains(t, db.Set(long, nil, nil), "65536")
	require.ErrorIs(t, db.Set(nil, huge, nil), ErrTooLarge)
	require.ErrorIs(t, db.Delete(long, nil), ErrTooLarge)
	require.ErrorIs(t, db.DeleteRange(nil, long, nil), ErrTooLarge)
	require.NoError(t, db.Set(long[1:], []byte("longest"), nil))
	require.NoError(t, db.Compact(nil, nil))
	got, err := db.Get(long[1:])
	require.NoError(t, err)
	require.Equal(t, "longest", string(got))
}

// A batch may be larger than a memtable.
func TestABatchLargerThanAMemtable(t *testing.T) {
	db := openMem(t, &Options{MemtableSize: 64 << 10})
	set(t, db, "before", "1")
	b := db.NewBatch()
	value := make([]byte, 300<<10)
	require.NoError(t, b.Set([]byte("large"), value))
	require.NoError(t, b.Delete([]byte("before")))
	require.NoError(t, b.Commit(nil))
	require.NoError(t, b.Commit(nil), "committed once more, it changes nothing")
	set(t, db, "after", "2")
	want := model{"large": string(value), "after": "2"}
	requireContents(t, want, db)
	require.NoError(t, db.Flush())
	requireContents(t, want, db)
}

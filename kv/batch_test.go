package kv

import (
	"context"
	"encoding/hex"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv/lookuptrace"
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
	require.Zero(t, b.Len())
	require.NoError(t, b.Commit(nil), "nothing to do")
	require.NoError(t, b.Set([]byte("a"), []byte("1")))
	require.NoError(t, b.DeleteRange([]byte("z"), []byte("y")))
	require.Equal(t, 1, b.Len(), "an empty range is no write")
	b.Reset()
	require.Zero(t, b.Len())
	require.NoError(t, b.Set([]byte("b"), []byte("2")))
	requireContents(t, storetest.Model{}, db)
	require.NoError(t, b.Commit(nil))
	requireContents(t, storetest.Model{"b": "2"}, db)
	b.Reset()
	require.NoError(t, b.Commit(nil))
	requireContents(t, storetest.Model{"b": "2"}, db)
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
	want := storetest.Model{"a": "2", "bb": "after", "d": "after"}
	requireContents(t, want, db)
	require.NoError(t, db.Flush(t.Context()))
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
		requireContents(t, storetest.Model{}, db)
		b.Reset()
		require.NoError(t, b.Commit(nil))
	}
	require.ErrorIs(t, db.Set(long, nil, nil), ErrTooLarge)
	require.ErrorContains(t, db.Set(long, nil, nil), "65536")
	require.ErrorIs(t, db.Set(nil, huge, nil), ErrTooLarge)
	require.ErrorIs(t, db.Delete(long, nil), ErrTooLarge)
	require.ErrorIs(t, db.DeleteRange(nil, long, nil), ErrTooLarge)
	require.NoError(t, db.Set(long[1:], []byte("longest"), nil))
	require.NoError(t, db.Compact(t.Context(), nil, nil))
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
	set(t, db, "after", "2")
	want := storetest.Model{"large": string(value), "after": "2"}
	requireContents(t, want, db)
	require.NoError(t, db.Flush(t.Context()))
	requireContents(t, want, db)
}

// A batch is written once. Reset makes it usable again; before, others can still read it.
func TestABatchIsCommittedOnce(t *testing.T) {
	t.Parallel()
	db := openMem(t, &Options{Merger: Append("")})
	b := db.NewBatch()
	require.NoError(t, b.Merge([]byte("k"), []byte("1")))
	require.NoError(t, b.Commit(nil))
	for range 2 {
		require.ErrorIs(t, b.Commit(nil), ErrBatchCommitted)
		require.ErrorIs(t, b.Set([]byte("k"), []byte("2")), ErrBatchCommitted)
		require.ErrorIs(t, b.Append(b), ErrBatchCommitted)
	}
	requireContents(t, storetest.Model{"k": "1"}, db)
	require.Equal(t, 1, b.Len())

	other := db.NewBatch()
	require.NoError(t, errors.Join(other.Append(b), b.Replay(other), other.Commit(nil)))
	requireContents(t, storetest.Model{"k": "111"}, db)
	b.Reset()
	require.NoError(t, errors.Join(b.Merge([]byte("k"), []byte("2")), b.Commit(nil)))
	requireContents(t, storetest.Model{"k": "1112"}, db)
}

// A batch that was not written can be committed once more, and one without writes any number of times.
func TestABatchThatWasNotWrittenStaysUsable(t *testing.T) {
	t.Parallel()
	db := openMem(t, nil)
	b := db.NewBatch()
	require.NoError(t, errors.Join(b.Commit(nil), b.Commit(nil), b.Set([]byte("k"), []byte("1"))))
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, b.CommitContext(ended, nil), context.Canceled)
	require.NoError(t, errors.Join(b.Set([]byte("l"), []byte("2")), b.Commit(nil)))
	requireContents(t, storetest.Model{"k": "1", "l": "2"}, db)
}

// A batch of no store says so: the zero Batch, and those of a DB that is nil.
func TestABatchOfNoStoreIsRefused(t *testing.T) {
	t.Parallel()
	var none *DB
	for _, b := range []*Batch{{}, none.NewBatch()} {
		require.NoError(t, errors.Join(b.Set([]byte("k"), nil), b.Delete([]byte("k")), b.DeleteRange(nil, nil)))
		require.ErrorIs(t, b.Commit(nil), errNoStore)
		require.ErrorIs(t, b.SetTTL([]byte("k"), nil, time.Hour), errNoStore)
		b.Reset()
		require.ErrorIs(t, b.Merge([]byte("k"), nil), errNoStore)
		require.ErrorIs(t, b.Commit(nil), errNoStore)
	}
	require.ErrorIs(t, none.Set([]byte("k"), nil, nil), errNoStore)
	require.ErrorIs(t, none.Merge([]byte("k"), nil, nil), errNoStore)
}

// What would be read or written through an interface that is nil is refused before anything else happens.
func TestNilReadersAndWritersAreRefused(t *testing.T) {
	t.Parallel()
	db := openMem(t, nil)
	for _, size := range []int64{0, 1, 1 << 20} {
		require.ErrorIs(t, db.SetReader(t.Context(), []byte("k"), size, nil, nil), errNilReader)
	}
	_, err := db.Backup(t.Context(), nil, BackupMark{})
	require.ErrorIs(t, err, errNilWriter)
	_, err = VerifyBackup(nil)
	require.ErrorIs(t, err, errNilReader)
	dir := filepath.Join(t.TempDir(), "restored")
	require.ErrorIs(t, Restore(t.Context(), nil, dir, nil), errNilReader)
	require.NoDirExists(t, dir)
	_, err = lookuptrace.New(nil, nil)
	require.ErrorIs(t, err, ErrInvalidOptions)
	requireContents(t, storetest.Model{}, db)
}

// DeletePrefix removes what begins with the prefix, whatever its bytes are, and never everything.
func TestDeletePrefix(t *testing.T) {
	for prefix, left := range map[string][]string{
		"a":        {"", "b", "\xff", "\xff\xff", "\xff\xffx"},
		"a/":       {"", "a", "a0", "b", "\xff", "\xff\xff", "\xff\xffx"},
		"\xff\xff": {"", "a", "a/", "a/\xff", "a/x", "a0", "b", "\xff"},
	} {
		for name, remove := range map[string]func(db *DB) error{
			"DB": func(db *DB) error { return db.DeletePrefix([]byte(prefix), nil) },
			"Batch": func(db *DB) error {
				b := db.NewBatch()
				return errors.Join(b.DeletePrefix([]byte(prefix)), b.Commit(nil))
			},
			"Tx": func(db *DB) error {
				return db.Update(func(tx *Tx) error { return tx.DeletePrefix([]byte(prefix)) })
			},
		} {
			db := openMem(t, nil)
			for _, k := range []string{"", "a", "a/", "a/\xff", "a/x", "a0", "b", "\xff", "\xff\xff", "\xff\xffx"} {
				set(t, db, k, "")
			}
			require.NoError(t, remove(db), name)
			want := storetest.Model{}
			for _, k := range left {
				want[k] = ""
			}
			requireContents(t, want, db)
		}
	}
	db := openMem(t, nil)
	set(t, db, "k", "v")
	require.ErrorIs(t, db.DeletePrefix(nil, nil), errEmptyPrefix)
	b := db.NewBatch()
	require.ErrorIs(t, b.DeletePrefix([]byte{}), errEmptyPrefix)
	require.ErrorIs(t, b.Commit(nil), errEmptyPrefix, "as any write that cannot work")
	require.ErrorIs(t, db.Update(func(tx *Tx) error { return tx.DeletePrefix(nil) }), errEmptyPrefix)
	requireContents(t, storetest.Model{"k": "v"}, db)
}

package kv

import (
	"bytes"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/commit"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/offheap"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/vfs"
)

// tooLargeValue returns a value of one byte more than the limit. No test reads or writes it, so it takes no memory.
var tooLargeValue = sync.OnceValue(func() []byte { return offheap.New(MaxValueSize + 1).Bytes() })

// Keys of the largest size and large values go all the way; those a byte larger than
// the limits are refused, and leave no trace.
func TestLimitsOfKeysAndValues(t *testing.T) {
	scale.OneGoroutine(t, "it is about sizes")
	t.Parallel()
	o := &Options{harness: harness.Harness{FS: vfs.NewMem()}, CacheSize: -1, MemtableSize: 1 << 20}
	db, err := Open("db", o)
	require.NoError(t, err)
	longest := bytes.Repeat([]byte("k"), MaxKeySize)
	tooLong := append(bytes.Clone(longest), 'k')
	tooLarge := tooLargeValue()
	if scale.Long() { // a copy takes a gigabyte
		require.NoError(t, db.NewBatch().Set([]byte("k"), tooLarge[1:]))
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)

	require.ErrorIs(t, db.Set(tooLong, nil, nil), ErrTooLarge)
	require.ErrorIs(t, db.Set([]byte("k"), tooLarge, nil), ErrTooLarge)
	require.ErrorIs(t, db.Delete(tooLong, nil), ErrTooLarge)
	require.ErrorIs(t, db.DeleteRange(nil, tooLong, nil), ErrTooLarge)
	require.ErrorIs(t, db.DeleteRange(tooLong, nil, nil), ErrTooLarge)
	_, err = db.Get(tooLong)
	require.ErrorIs(t, err, ErrNotFound)

	require.NoError(t, db.Set(nil, nil, nil))
	require.NoError(t, db.Set(longest, []byte("short"), nil))
	require.NoError(t, db.Set([]byte("large"), large, NoSync))
	check := func() {
		t.Helper()
		v, err := db.Get([]byte("large"))
		require.NoError(t, err)
		require.True(t, bytes.Equal(large, v))
		v, err = db.Get(longest)
		require.NoError(t, err)
		require.Equal(t, "short", string(v))
		it, err := db.NewIter(nil)
		require.NoError(t, err)
		var keys []string
		for ok := it.First(); ok; ok = it.Next() {
			keys = append(keys, string(it.Key()))
		}
		require.True(t, it.SeekGE(tooLong))
		require.Equal(t, "large", string(it.Key()))
		require.True(t, it.SeekLT(tooLong))
		require.Len(t, it.Key(), MaxKeySize)
		require.NoError(t, it.Close())
		require.Equal(t, []string{"", string(longest), "large"}, keys)
	}
	require.NoError(t, db.Close()) // from the log
	db, err = Open("db", o)
	require.NoError(t, err)
	check()
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.NoError(t, db.Close())
	db, err = Open("db", o)
	require.NoError(t, err)
	check()
	require.NoError(t, db.DeleteRange(longest, append(bytes.Clone(longest[:MaxKeySize-1]), 'l'), nil))
	ok, err := db.Has(longest)
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, db.Close())
}

// A batch takes what MaxBatchSize says, and what does not fit makes all of it
// invalid.
func TestLimitOfBatches(t *testing.T) {
	db := openMem(t, nil)
	fits := &Batch{db: db, repr: commit.Batch{Arena: MaxBatchSize - memtable.EntrySize(1, 10)}}
	require.NoError(t, fits.Set([]byte("k"), make([]byte, 10)))
	over := &Batch{db: db, repr: commit.Batch{Arena: MaxBatchSize - memtable.EntrySize(1, 10)}}
	require.ErrorIs(t, over.Set([]byte("k"), make([]byte, 11)), ErrTooLarge)
	require.ErrorIs(t, over.Commit(nil), ErrTooLarge)
	over.Reset()
	require.NoError(t, over.Set([]byte("k"), []byte("v")))
	require.NoError(t, over.Commit(nil))

	ranges := &Batch{db: db, repr: commit.Batch{Arena: MaxBatchSize - memtable.TombstoneSize(1, 2)}}
	require.NoError(t, ranges.DeleteRange([]byte("a"), []byte("b")))
	require.ErrorIs(t, ranges.DeleteRange([]byte("a"), []byte("b")), ErrTooLarge)
	require.ErrorIs(t, ranges.Commit(nil), ErrTooLarge)
}

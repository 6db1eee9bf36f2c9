package kv

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/sstable"
)

// sizeOf is the length of the value of key i: some lie in blocks of their own, some by the dozen in one.
func sizeOf(i int) int { return []int{0, 3, 255, 256, 4000, 100_000}[i*7/4%6] }

func writeKeys(t *testing.T, db *DB, n int) {
	for i := range n {
		key, value := fmt.Appendf(nil, "%04d", i), bytes.Repeat([]byte{byte('a' + i%26)}, sizeOf(i))
		if i%5 == 4 {
			require.NoError(t, db.SetTTL(key, value, time.Hour, NoSync))
		} else {
			require.NoError(t, db.Set(key, value, NoSync))
		}
	}
}

// An iterator for keys comes to the same keys as one for values, and says how long the values are and when they
// end, in all places: twice, since blocks are cached then.
func TestKeysOnlySaysTheSame(t *testing.T) {
	t.Parallel()
	const n = 60
	for name, o := range map[string]Options{
		"cached":        {},
		"uncached":      {CacheSize: -1},
		"uncompressed":  {Compression: sstable.NoCompression},
		"memory-mapped": {Compression: sstable.NoCompression, MemoryMap: true},
		"large blocks":  {BlockSize: 32 << 10},
		"apart":         {SeparateFrom: 1},
		"partly apart":  {SeparateFrom: 256},
	} {
		t.Run(name, func(t *testing.T) {
			clock := &storetest.Clock{}
			o.Clock = clock.Time
			db := openDir(t, t.TempDir(), &o)
			ends := clock.Time().Add(time.Hour)
			writeKeys(t, db, n)
			for _, place := range []func() error{
				func() error { return nil }, func() error { return db.Flush(t.Context()) },
				func() error { return db.Compact(t.Context(), nil, nil) },
				func() error { // other iterators have left their buffers
					return db.DeleteRange([]byte("0050"), []byte("0055"), NoSync)
				},
			} {
				require.NoError(t, place())
				for range 2 {
					requireSameKeys(t, db, ends)
				}
			}
			require.NoError(t, db.Close())
		})
	}
}

// requireSameKeys moves an iterator for keys beside one for values.
func requireSameKeys(t *testing.T, db *DB, ends time.Time) {
	t.Helper()
	values, err := db.NewIter(nil)
	require.NoError(t, err)
	keys, err := db.NewIter(&IterOptions{KeysOnly: true})
	require.NoError(t, err)
	require.Zero(t, keys.ValueSize(), "it is on no entry")
	require.Zero(t, keys.Expiry())
	turn, back := values.SeekGE([]byte("003")), keys.SeekGE([]byte("003"))
	for step := 0; turn; step++ {
		require.True(t, back)
		require.Equal(t, string(values.Key()), string(keys.Key()))
		require.Nil(t, keys.Value())
		require.Equal(t, len(values.Value()), values.ValueSize())
		require.Equal(t, values.ValueSize(), keys.ValueSize(), "%s", keys.Key())
		require.True(t, values.Expiry().Equal(keys.Expiry()))
		if i := bytes.IndexByte([]byte("49"), keys.Key()[3]); i >= 0 {
			require.True(t, ends.Equal(keys.Expiry()), "%s", keys.Key())
		} else {
			require.True(t, keys.Expiry().IsZero(), "%s", keys.Key())
		}
		if step < 20 || step > 40 {
			turn, back = values.Next(), keys.Next()
		} else {
			turn, back = values.Prev(), keys.Prev()
		}
	}
	require.False(t, back)
	require.NoError(t, errors.Join(values.Error(), keys.Error(), values.Close(), keys.Close()))
	require.Zero(t, keys.ValueSize(), "closed")
	require.Zero(t, keys.Expiry())
}

// A key with operands is there, whatever the merger says; its size is not known before they are combined.
func TestKeysOnlyDoesNotCombine(t *testing.T) {
	combined := 0
	merger := NewMerger("counting", func(_, older, newer []byte) ([]byte, error) {
		if combined++; combined > 1000 {
			return nil, errors.New("no more")
		}
		return append(older, newer...), nil
	})
	db := openMem(t, &Options{Merger: merger, L0CompactionThreshold: 50})
	set(t, db, "a", "value")
	set(t, db, "b", "value")
	require.NoError(t, db.Flush(t.Context()))
	for _, key := range []string{"b", "c"} {
		for range 3 { // too few for a fold
			require.NoError(t, db.Merge([]byte(key), []byte("+"), NoSync))
		}
	}
	require.Zero(t, combined)
	it, err := db.NewIter(&IterOptions{KeysOnly: true})
	require.NoError(t, err)
	var got []byte
	for ok := it.First(); ok; ok = it.Next() {
		got = fmt.Appendf(got, "%s %d;", it.Key(), it.ValueSize())
	}
	for ok := it.Last(); ok; ok = it.Prev() {
		got = fmt.Appendf(got, "%s %d;", it.Key(), it.ValueSize())
	}
	require.Equal(t, "a 5;b -1;c -1;"+"c -1;b -1;a 5;", string(got))
	require.NoError(t, errors.Join(it.Error(), it.Close()))
	require.Zero(t, combined, "nothing was combined")
	require.Equal(t, storetest.Model{"a": "value", "b": "value+++", "c": "+++"}, contents(t, db, nil))
	require.NotZero(t, combined)
	combined = 1000
	var failed error
	for range db.All(nil, &failed) {
	}
	require.ErrorIs(t, failed, ErrMergeFailed)
	n := 0
	for range db.All(&IterOptions{KeysOnly: true}, &failed) {
		n++
	}
	require.NoError(t, failed)
	require.Equal(t, 3, n)
	combined = 0
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	n = 0
	it, err = db.NewIter(&IterOptions{KeysOnly: true})
	require.NoError(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		n += it.ValueSize()
	}
	require.Equal(t, len("value"+"value+++"+"+++"), n, "compaction has combined them")
	require.NoError(t, it.Close())
}

// A key that ends while an iterator is on it keeps its entry, and is passed over after that.
func TestKeysOnlyPassesOverWhatHasEnded(t *testing.T) {
	clock := &storetest.Clock{}
	db := openMem(t, &Options{Clock: clock.Time})
	for _, key := range []string{"a", "b", "c"} {
		require.NoError(t, db.SetTTL([]byte(key), []byte(strings.Repeat("x", 300)), time.Second, NoSync))
	}
	set(t, db, "d", "stays")
	for range 2 {
		it, err := db.NewIter(&IterOptions{KeysOnly: true})
		require.NoError(t, err)
		require.True(t, it.First() && it.Next())
		ends := it.Expiry()
		require.True(t, clock.Time().Add(time.Second).Equal(ends))
		clock.Advance(time.Second)
		require.Equal(t, "b", string(it.Key()))
		require.Equal(t, 300, it.ValueSize())
		require.True(t, ends.Equal(it.Expiry()))
		require.True(t, it.Next())
		require.Equal(t, "d", string(it.Key()))
		require.Zero(t, it.Expiry())
		require.False(t, it.Prev())
		require.NoError(t, it.Close())
		clock.Advance(-time.Second)
		require.NoError(t, db.Flush(t.Context()))
	}
}

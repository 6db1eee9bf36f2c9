package siftbleve

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	store "github.com/blevesearch/upsidedown_store_api"
	suite "github.com/blevesearch/upsidedown_store_api/test"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
)

type batchOf = store.KVBatch

// execute writes a batch.
func execute(t testing.TB, s store.KVStore, fill func(b batchOf)) error {
	w, err := s.Writer()
	require.NoError(t, err)
	b := w.NewBatch()
	fill(b)
	err = w.ExecuteBatch(b)
	require.NoError(t, b.Close())
	require.NoError(t, w.Close())
	return err
}

func write(t testing.TB, s store.KVStore, fill func(b batchOf)) {
	t.Helper()
	require.NoError(t, execute(t, s, fill))
}

func read(t testing.TB, s store.KVStore) store.KVReader {
	t.Helper()
	r, err := s.Reader()
	require.NoError(t, err)
	return r
}

// get returns a value, or "absent".
func get(t testing.TB, s store.KVStore, key string) string {
	t.Helper()
	r := read(t, s)
	value, err := r.Get([]byte(key))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	if value == nil {
		return "absent"
	}
	return string(value)
}

// entries returns what is left of an iterator, and closes it.
func entries(t testing.TB, it store.KVIterator) (found []string) {
	t.Helper()
	for ; it.Valid(); it.Next() {
		key, value, valid := it.Current()
		require.True(t, valid)
		require.Equal(t, it.Key(), key)
		require.Equal(t, it.Value(), value)
		found = append(found, fmt.Sprintf("%s=%s", key, value))
	}
	key, value, valid := it.Current()
	require.True(t, key == nil && value == nil && !valid && it.Key() == nil && it.Value() == nil)
	it.Next()
	require.False(t, it.Valid())
	require.NoError(t, it.Close())
	return found
}

func TestBoundsOfIterators(t *testing.T) {
	s := open(t, nil, map[string]any{"in_memory": true})
	keys := []string{"", "a", "a\xff", "a\xff\xff", "b", "\xff", "\xff\xff"}
	write(t, s, func(b batchOf) {
		for _, key := range keys {
			b.Set([]byte(key), []byte("v"))
		}
	})
	r := read(t, s)
	for _, prefix := range append(keys, "c", "a\xff\x01") {
		var want []string
		for _, key := range keys {
			if strings.HasPrefix(key, prefix) {
				want = append(want, key+"=v")
			}
		}
		require.Equal(t, want, entries(t, r.PrefixIterator([]byte(prefix))), "%q", prefix)
	}
	all := entries(t, r.PrefixIterator(nil))
	require.Len(t, all, len(keys))
	require.Equal(t, all, entries(t, r.RangeIterator(nil, nil)))
	require.Equal(t, all[:1], entries(t, r.RangeIterator(nil, []byte("a"))))
	require.Equal(t, all[1:4], entries(t, r.RangeIterator([]byte("a"), []byte("b"))))
	require.Equal(t, all[4:], entries(t, r.RangeIterator([]byte("b"), nil)))
	require.Empty(t, entries(t, r.RangeIterator([]byte("b"), []byte("a"))))
	require.Empty(t, entries(t, r.RangeIterator(nil, []byte{})))

	values, err := r.MultiGet([][]byte{[]byte("b"), []byte("none"), []byte(""), []byte("b")})
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte("v"), nil, []byte("v"), []byte("v")}, values)
	require.NoError(t, r.Close())
}

// TestFirstBytes stores values that begin like what tells operands and values apart.
func TestFirstBytes(t *testing.T) {
	s := open(t, &suite.TestMergeCounter{}, map[string]any{"in_memory": true})
	for i := range 256 {
		for _, value := range []string{string([]byte{byte(i)}), string([]byte{byte(i), 0, 0xFF, 0xFE}), ""} {
			write(t, s, func(b batchOf) { b.Set([]byte("k"), []byte(value)) })
			require.Equal(t, value, get(t, s, "k"))
			r := read(t, s)
			require.Equal(t, []string{"k=" + value}, entries(t, r.PrefixIterator(nil)))
			values, err := r.MultiGet([][]byte{[]byte("k")})
			require.NoError(t, err)
			require.Equal(t, [][]byte{[]byte(value)}, values)
			require.NoError(t, r.Close())
		}
	}
}

func TestBatches(t *testing.T) {
	s := open(t, nil, map[string]any{"in_memory": true})
	w, err := s.Writer()
	require.NoError(t, err)
	require.ErrorIs(t, w.ExecuteBatch(store.NewEmulatedBatch(nil)), errForeignBatch)
	other := open(t, nil, map[string]any{"in_memory": true})
	theirs, err := other.Writer()
	require.NoError(t, err)
	require.ErrorIs(t, w.ExecuteBatch(theirs.NewBatch()), errForeignBatch)

	require.NoError(t, w.ExecuteBatch(w.NewBatch()), "empty")
	buf, b, err := w.NewBatchEx(store.KVBatchOptions{TotalBytes: 30, NumSets: 1})
	require.NoError(t, err)
	require.Len(t, buf, 30)
	n := copy(buf, "key")
	copy(buf[n:], "value")
	b.Set(buf[:3], buf[3:8])
	clear(buf)
	b.Set(make([]byte, kv.MaxKeySize+1), nil)
	require.ErrorIs(t, w.ExecuteBatch(b), kv.ErrTooLarge)
	require.Equal(t, "absent", get(t, s, "key"), "all or nothing")
	b.Reset()
	b.Merge([]byte("key"), []byte("operand"))
	require.ErrorIs(t, w.ExecuteBatch(b), kv.ErrNoMerger)
	b.Reset()
	b.Set([]byte("key"), []byte("1"))
	b.Delete([]byte("key"))
	b.Set([]byte("key"), []byte("2"))
	require.NoError(t, w.ExecuteBatch(b))
	require.Equal(t, "2", get(t, s, "key"))

	require.NoError(t, b.Close())
	b.Set([]byte("key"), []byte("3"))
	b.Merge([]byte("key"), []byte("3"))
	b.Delete([]byte("key"))
	b.Reset()
	require.ErrorIs(t, w.ExecuteBatch(b), errClosedBatch)
	require.Equal(t, "2", get(t, s, "key"))
}

func TestAfterClose(t *testing.T) {
	s, err := New(nil, map[string]any{"in_memory": true})
	require.NoError(t, err)
	write(t, s, func(b batchOf) { b.Set([]byte("k"), []byte("v")) })
	w, err := s.Writer()
	require.NoError(t, err)
	b := w.NewBatch()
	b.Delete([]byte("k"))
	r := read(t, s)
	it, unmoved := r.RangeIterator(nil, nil), r.RangeIterator(nil, nil)
	require.ErrorIs(t, s.Close(), kv.ErrSnapshotsOpen)
	require.ErrorIs(t, s.Close(), kv.ErrSnapshotsOpen)

	_, err = s.Reader()
	require.ErrorIs(t, err, kv.ErrClosed)
	_, err = s.Writer()
	require.ErrorIs(t, err, kv.ErrClosed)
	require.ErrorIs(t, w.ExecuteBatch(b), kv.ErrClosed)
	_, err = r.Get([]byte("k"))
	require.ErrorIs(t, err, kv.ErrClosed)
	_, err = r.MultiGet([][]byte{[]byte("k")})
	require.ErrorIs(t, err, kv.ErrClosed)
	it.Seek(nil)
	require.False(t, it.Valid())
	require.ErrorIs(t, it.Close(), kv.ErrClosed, "it is at no end")
	require.NoError(t, unmoved.Close(), "it lacks nothing")
	late := r.PrefixIterator(nil)
	late.Seek(nil)
	late.Next()
	require.Empty(t, late.Key())
	require.False(t, late.Valid())
	require.ErrorIs(t, late.Close(), kv.ErrClosed)
	require.NoError(t, r.Close())
}

// TestConcurrentBatchesAndReaders has each reader see all or nothing of each batch, and nothing new.
func TestConcurrentBatchesAndReaders(t *testing.T) {
	const writers, batches = 4, 50
	s := open(t, &suite.TestMergeCounter{}, map[string]any{"in_memory": true, "memtable_size": 64 << 10})
	one := []byte{1, 0, 0, 0, 0, 0, 0, 0}
	var all sync.WaitGroup
	for n := range writers {
		all.Go(func() {
			for i := range batches {
				write(t, s, func(b batchOf) {
					b.Merge([]byte("count"), one)
					b.Set(fmt.Appendf(nil, "left/%d/%d", n, i), make([]byte, 1000))
					b.Set(fmt.Appendf(nil, "right/%d/%d", n, i), one)
				})
			}
		})
		all.Go(func() {
			for range batches {
				r := read(t, s)
				left := len(entries(t, r.PrefixIterator([]byte("left/"))))
				right := len(entries(t, r.PrefixIterator([]byte("right/"))))
				values, err := r.MultiGet([][]byte{[]byte("count")})
				require.NoError(t, err)
				require.Equal(t, left, right)
				if left > 0 {
					require.Equal(t, []byte{byte(left), 0, 0, 0, 0, 0, 0, 0}, values[0])
				}
				require.NoError(t, r.Close())
			}
		})
	}
	all.Wait()
	require.Equal(t, string([]byte{writers * batches, 0, 0, 0, 0, 0, 0, 0}), get(t, s, "count"))
}

func TestStats(t *testing.T) {
	s := open(t, nil, map[string]any{"in_memory": true})
	write(t, s, func(b batchOf) { b.Set([]byte("k"), []byte("v")) })
	require.NoError(t, s.DB().Flush(t.Context()))
	require.Equal(t, "v", get(t, s, "k"))
	m := s.StatsMap()
	require.EqualValues(t, 1, m["files"])
	require.EqualValues(t, 1, m["entries"])
	require.EqualValues(t, 1, m["gets"])
	require.EqualValues(t, 1, m["writes"])
	require.Positive(t, m["file_bytes"])
	text, err := json.Marshal(s.Stats())
	require.NoError(t, err)
	var decoded map[string]any
	require.NoError(t, json.Unmarshal(text, &decoded))
	for name := range m {
		require.Contains(t, decoded, name)
	}
	require.Contains(t, decoded, "metrics")
}

// TestCompactDropsUnusedTerms removes counts of zero, however they came about, and nothing else.
func TestCompactDropsUnusedTerms(t *testing.T) {
	s := open(t, &suite.TestMergeCounter{}, map[string]any{"in_memory": true})
	var want []string
	write(t, s, func(b batchOf) {
		for i := range 3 * compactChunk {
			key := fmt.Sprintf("d%06d", i)
			if i%3 == 0 {
				b.Set([]byte(key), zero)
				continue
			}
			b.Set([]byte(key), []byte{2})
			want = append(want, key+"=\x02")
		}
		b.Set([]byte("c"), zero)
		b.Set([]byte("e"), zero)
	})
	require.NoError(t, s.Compact())
	r := read(t, s)
	require.Equal(t, slices.Concat([]string{"c=\x00"}, want, []string{"e=\x00"}), entries(t, r.RangeIterator(nil, nil)))
	require.NoError(t, r.Close())
}

//go:build lmdb

package lmdb

import (
	"bytes"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func open(t *testing.T) *DB {
	t.Helper()
	db, err := Open(t.TempDir(), false)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	return db
}

// TestLargeEntries reads values that have no room where they go at first.
func TestLargeEntries(t *testing.T) {
	db := open(t)
	sizes := []int{0, 1, scanBytes - 9 - 8, scanBytes - 8, scanBytes, 300_000}
	var b Batch
	for i, size := range sizes {
		b.Put(fmt.Appendf(nil, "%09d", i), bytes.Repeat([]byte{byte(i + 1)}, size))
	}
	require.NoError(t, db.Write(&b))
	r, err := db.NewReader()
	require.NoError(t, err)
	for i, size := range sizes {
		value, found, err := r.Get([]byte("x"), fmt.Appendf(nil, "%09d", i))
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, "x"+string(bytes.Repeat([]byte{byte(i + 1)}, size)), string(value))
	}
	_, found, err := r.Get(nil, []byte("nothing"))
	require.NoError(t, err)
	require.False(t, found)
	require.NoError(t, r.Close())
	for _, limit := range []int{0, 1, 3, 6, 7} {
		var got []int
		require.NoError(t, db.Scan(nil, limit, func(_, value []byte) { got = append(got, len(value)) }))
		want := sizes
		if limit > 0 {
			want = sizes[:min(limit, len(sizes))]
		}
		require.Equal(t, want, got, "at most %d", limit)
	}
}

func TestReadersSeeWhatIsWrittenLater(t *testing.T) {
	db := open(t)
	r, err := db.NewReader()
	require.NoError(t, err)
	var b Batch
	for i := range 3 {
		b.Reset()
		b.Put([]byte("k"), []byte{byte(i)})
		require.NoError(t, db.Write(&b))
		value, found, err := r.Get(nil, []byte("k"))
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, []byte{byte(i)}, value)
	}
	b.Reset()
	b.Delete([]byte("k"))
	b.Delete([]byte("never there"))
	require.NoError(t, db.Write(&b))
	_, found, err := r.Get(nil, []byte("k"))
	require.NoError(t, err)
	require.False(t, found)
	require.NoError(t, r.Close())
}

func TestManyWritersAndReaders(t *testing.T) {
	db := open(t)
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			r, err := db.NewReader()
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = r.Close() }()
			var b Batch
			for i := range 50 {
				b.Reset()
				key := fmt.Appendf(nil, "%d-%d", g, i)
				b.Put(key, key)
				if err := db.Write(&b); err != nil {
					t.Error(err)
				}
				if value, found, err := r.Get(nil, key); err != nil || !found || !bytes.Equal(key, value) {
					t.Errorf("%s: %s, %t, %v", key, value, found, err)
				}
			}
		})
	}
	group.Wait()
	n := 0
	require.NoError(t, db.Scan([]byte("0"), 0, func(_, _ []byte) { n++ }))
	require.Equal(t, 400, n)
}

func TestErrorsSayWhatFailed(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	_, err := Open(missing, true)
	require.ErrorContains(t, err, "lmdb: open "+missing+": No such file")
	var b Batch
	b.Put(nil, []byte("value"))
	require.ErrorContains(t, open(t).Write(&b), "lmdb: write: MDB_BAD_VALSIZE")
}

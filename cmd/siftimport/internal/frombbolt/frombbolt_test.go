package frombbolt

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
)

// FuzzSplit asserts that a prefix and a key come apart as they were put together, and that of other bytes nothing is
// made but what is put together to the same.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("a"), []byte("b\x00"), []byte("key"))
	f.Add([]byte("\x00"), []byte("\x00\xff"), []byte("\x00\x01"))
	f.Fuzz(func(t *testing.T, a, b, key []byte) {
		path, got, ok := Split(append(Prefix(a, b), key...))
		require.True(t, ok)
		require.Len(t, path, 2)
		require.True(t, bytes.Equal(a, path[0]) && bytes.Equal(b, path[1]) && bytes.Equal(key, got))
		if path, rest, ok := Split(key); ok {
			require.Equal(t, key, append(Prefix(path...), rest...))
		}
	})
}

// A scan from any key on is the end of a whole scan.
func TestScansFromEveryKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bbolt")
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		for i := range 4 {
			b, err := tx.CreateBucket(fmt.Appendf(nil, "\x00%d", i))
			require.NoError(t, err)
			for j := range 3 {
				require.NoError(t, b.Put(fmt.Appendf(nil, "k%d", j), nil))
				inner, err := b.CreateBucket(fmt.Appendf(nil, "j%d", j))
				require.NoError(t, err)
				for k := range i {
					require.NoError(t, inner.Put(fmt.Appendf(nil, "%d", k), nil))
				}
			}
		}
		return nil
	}))
	require.NoError(t, db.Close())
	s, err := Open(path, nil)
	require.NoError(t, err)
	keys := func(from []byte) (all []string) {
		require.NoError(t, s.Scan(source.Range{From: from}, func(e *source.Entry) error {
			all = append(all, string(e.Key))
			return nil
		}))
		return all
	}
	all := keys(nil)
	require.Len(t, all, 4*3+(0+1+2+3)*3)
	for i, key := range all {
		require.Equal(t, all[i:], keys([]byte(key)))
		require.Equal(t, append([]string(nil), all[i+1:]...), keys(append([]byte(key), 0)))
	}
	require.NoError(t, s.Close())
}

package storetest

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/objstore"
)

// A CountedStore is a store in an object store that counts requests.
type CountedStore struct {
	objstore.Store
	Counters objstore.Counters
}

// NewCountedStore returns an empty store in memory whose counters are zero.
func NewCountedStore() *CountedStore {
	s := &CountedStore{}
	s.Store = objstore.WithCounters(objstore.NewMem(), &s.Counters)
	return s
}

// Requests returns how many requests of each kind f needs.
func (s *CountedStore) Requests(f func()) map[objstore.Kind]int64 {
	before := s.Counters.Snapshot()
	f()
	needed := map[objstore.Kind]int64{}
	for kind, c := range s.Counters.Snapshot().Minus(before) {
		if c.Requests > 0 {
			needed[objstore.Kind(kind)] = c.Requests
		}
	}
	return needed
}

// BlobsIn returns the keys of the blob files in an object store, those of all branches.
func BlobsIn(t testing.TB, s objstore.Store) (keys []string) {
	t.Helper()
	for o, err := range s.List(context.Background(), "", "") {
		require.NoError(t, err)
		if strings.HasSuffix(o.Key, ".blob") {
			keys = append(keys, o.Key)
		}
	}
	return keys
}

// KeysOf returns the keys of all objects.
func KeysOf(t *testing.T, s objstore.Store) (keys []string) {
	t.Helper()
	for o, err := range s.List(t.Context(), "", "") {
		require.NoError(t, err)
		keys = append(keys, o.Key)
	}
	return keys
}

// CopyObjects copies all objects to a store of its own.
func CopyObjects(t testing.TB, from objstore.Store) objstore.Store {
	t.Helper()
	to := objstore.NewMem()
	for o, err := range from.List(context.Background(), "", "") {
		require.NoError(t, err)
		body, err := objstore.ReadAll(context.Background(), from, o.Key, int(o.Size))
		require.NoError(t, err)
		require.NoError(t, to.PutIfAbsent(context.Background(), o.Key, body))
	}
	return to
}

// TablesOf returns the keys of the sorted files in an object store.
func TablesOf(t testing.TB, s objstore.Store) (keys []string) {
	t.Helper()
	for o, err := range s.List(context.Background(), "sst/", "") {
		require.NoError(t, err)
		keys = append(keys, o.Key)
	}
	require.NotEmpty(t, keys)
	return keys
}

// ManyEdits has lists of files put as edits that are whole ones in small stores.
func ManyEdits(p *objectdir.Params) { p.Edits.Percent, p.Edits.Each, p.Edits.Max = 1<<20, 1, 8 }

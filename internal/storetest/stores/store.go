// Package stores opens stores for tests.
package stores

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
)

// OpenDir opens the store in a directory.
func OpenDir(tb testing.TB, dir string, o *kv.Options) *kv.DB {
	tb.Helper()
	db, err := kv.Open(dir, o)
	require.NoError(tb, err)
	return db
}

// OpenMem opens a store of its own in memory, closed at the end of the test.
func OpenMem(tb testing.TB, o *kv.Options) *kv.DB {
	tb.Helper()
	var opts kv.Options
	if o != nil {
		opts = *o
	}
	opts.InMemory = true
	db := OpenDir(tb, "db", &opts)
	CloseAtEnd(tb, db)
	return db
}

// CloseAtEnd closes a store with the test, unless the test has closed it.
func CloseAtEnd(tb testing.TB, db *kv.DB) {
	tb.Cleanup(func() {
		if _, err := db.Has([]byte("a key")); !errors.Is(err, kv.ErrClosed) {
			require.NoError(tb, db.Close())
		}
		db = nil // a parallel test that has ended keeps its functions until all tests end
	})
}

// Set sets a key without a sync.
func Set(tb testing.TB, db *kv.DB, key, value string) {
	storetest.Fine(tb, db.Set([]byte(key), []byte(value), kv.NoSync))
}

// Begin begins a transaction.
func Begin(tb testing.TB, db *kv.DB, writable bool) *kv.Tx {
	tb.Helper()
	tx, err := db.Begin(writable)
	require.NoError(tb, err)
	return tx
}

// Contents returns what a reader has, forward. It requires that the reader has the same backward.
func Contents(tb testing.TB, r kv.Reader, o *kv.IterOptions) storetest.Model {
	tb.Helper()
	it, err := r.NewIter(o)
	require.NoError(tb, err)
	m := storetest.Model{}
	var keys []string
	for it.First(); it.Valid(); it.Next() {
		keys = append(keys, string(it.Key()))
		m[string(it.Key())] = string(it.Value())
	}
	require.NoError(tb, it.Error())
	for it.Last(); it.Valid(); it.Prev() {
		require.NotEmpty(tb, keys)
		require.Equal(tb, keys[len(keys)-1], string(it.Key()))
		keys = keys[:len(keys)-1]
	}
	require.Empty(tb, keys)
	require.NoError(tb, it.Error())
	require.NoError(tb, it.Close())
	return m
}

// RequireDamage requires that an error matches kv.ErrCorruption and names the file, the offset and the command to run.
// A negative offset is not known.
func RequireDamage(t testing.TB, err error, name string, offset int64) {
	t.Helper()
	require.ErrorIs(t, err, kv.ErrCorruption)
	var damage *kv.CorruptionError
	require.ErrorAs(t, err, &damage)
	require.Equal(t, name, damage.File)
	require.ErrorContains(t, err, name)
	if offset >= 0 {
		require.Equal(t, offset, damage.Offset, err.Error())
		require.ErrorContains(t, err, fmt.Sprintf("offset %d", offset))
	}
	require.ErrorContains(t, err, "verify "+filepath.Dir(name))
}

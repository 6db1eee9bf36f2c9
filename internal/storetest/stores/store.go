// Package stores opens stores for tests.
package stores

import (
	"errors"
	"math/rand/v2"
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

// Begin begins a transaction.
func Begin(tb testing.TB, db *kv.DB, writable bool) *kv.Tx {
	tb.Helper()
	tx, err := db.Begin(writable)
	require.NoError(tb, err)
	return tx
}

// OpenWriter opens the store in a directory, and closes it at the end of the test.
func OpenWriter(tb testing.TB, dir string, o *kv.Options) *kv.DB {
	tb.Helper()
	db := OpenDir(tb, dir, o)
	CloseAtEnd(tb, db)
	return db
}

// OpenView opens a view of the store in a directory, closed at the end of the test.
func OpenView(tb testing.TB, dir string, o *kv.Options) *kv.DB {
	tb.Helper()
	db, err := kv.OpenReadOnly(dir, o)
	require.NoError(tb, err)
	CloseAtEnd(tb, db)
	return db
}

// Set writes a value, without a sync.
func Set(tb testing.TB, db *kv.DB, key, value string) {
	storetest.Fine(tb, db.Set([]byte(key), []byte(value), kv.NoSync))
}

// RequireGet requires a value.
func RequireGet(t testing.TB, db kv.Reader, key, want string) {
	t.Helper()
	v, err := db.Get([]byte(key))
	require.NoError(t, err)
	require.Equal(t, want, string(v))
}

// MergeAll merges operands into a key, without a sync.
func MergeAll(tb testing.TB, db *kv.DB, key string, operands ...string) {
	tb.Helper()
	for _, o := range operands {
		require.NoError(tb, db.Merge([]byte(key), []byte(o), kv.NoSync))
	}
}

// ChangeAtRandom is storetest.ChangeAtRandom, without a sync.
func ChangeAtRandom(t testing.TB, db *kv.DB, want storetest.Model, rng *rand.Rand, round int) {
	t.Helper()
	storetest.ChangeAtRandom(t, db, kv.NoSync, want, rng, round)
}

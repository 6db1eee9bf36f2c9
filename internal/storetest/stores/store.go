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

// ChangeAtRandom is storetest.ChangeAtRandom, without a sync.
func ChangeAtRandom(t testing.TB, db *kv.DB, want storetest.Model, rng *rand.Rand, round int) {
	t.Helper()
	storetest.ChangeAtRandom(t, db, kv.NoSync, want, rng, round)
}

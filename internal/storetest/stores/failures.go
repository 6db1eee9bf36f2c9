package stores

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// UntilResumed returns when a store that has failed takes writes again, and is not being resumed any more.
func UntilResumed(db *kv.DB) {
	storetest.Until(func() bool {
		harness.Resumed(db)
		return db.Metrics().Failure == ""
	})
}

// Crash releases a store's directory without closing the store in good order. It leaves what a killed process would,
// at a moment without background work.
func Crash(t testing.TB, db *kv.DB) {
	t.Helper()
	harness.Settle(db)
	require.NoError(t, harness.Abandon(db))
}

// Damageable makes a store with one table in the last level and a log, both of 200 synced keys, and returns what it
// holds.
func Damageable(t testing.TB) (dir string, m storetest.Model) {
	t.Helper()
	dir, m = t.TempDir(), storetest.Model{}
	db := OpenDir(t, dir, &kv.Options{Compression: sstable.NoCompression, BlockSize: 512})
	rng := rand.New(rand.NewPCG(4, 4))
	write := func(prefix string) {
		b := db.NewBatch()
		for i := range 200 {
			k, v := fmt.Sprintf("%s%03d", prefix, i), string(storetest.RandomBytes(rng, 100))
			m[k] = v
			if require.NoError(t, b.Set([]byte(k), []byte(v))); i%10 == 9 {
				require.NoError(t, b.Commit(kv.Sync))
				b.Reset()
			}
		}
	}
	write("table/")
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	write("log/")
	Crash(t, db)
	return dir, m
}

// RequireFull requires that an error says that the disk is full, and what to do.
func RequireFull(t testing.TB, err error, dir string) {
	t.Helper()
	require.ErrorIs(t, err, kv.ErrReadOnly)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, "free space on the file system of "+dir)
}

package stores

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
)

// UntilResumed returns when a store that has failed takes writes again.
func UntilResumed(db *kv.DB) {
	storetest.Until(func() bool { return db.Metrics().Failure == "" })
}

// Crash releases a store's directory without closing the store in good order. It leaves what a killed process would,
// at a moment without background work.
func Crash(t testing.TB, db *kv.DB) {
	t.Helper()
	harness.Settle(db)
	require.NoError(t, harness.Abandon(db))
}

// SetReader sets a key by DB.SetReader.
func SetReader(t testing.TB, db *kv.DB, key, value string, o *kv.WriteOptions) {
	t.Helper()
	require.NoError(t, db.SetReader(t.Context(), []byte(key), int64(len(value)), strings.NewReader(value), o))
}

// RequireFull requires that an error says that the disk is full, and what to do.
func RequireFull(t testing.TB, err error, dir string) {
	t.Helper()
	require.ErrorIs(t, err, kv.ErrReadOnly)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, "free space on the file system of "+dir)
}

package stores

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
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

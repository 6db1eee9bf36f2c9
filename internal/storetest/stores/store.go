// Package stores opens stores for tests, and looks at what they have.
package stores

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/kv"
)

// OpenDir opens the store in a directory.
func OpenDir(tb testing.TB, dir string, o *kv.Options) *kv.DB {
	tb.Helper()
	db, err := kv.Open(dir, o)
	require.NoError(tb, err)
	return db
}

// Settle returns when a store has no background work left.
func Settle(db *kv.DB) { harness.Settle(db) }

// Verify verifies all files of a store, as they are read for a backup and as the store that is restored has them.
func Verify(db *kv.DB, w io.Writer) error {
	dir, err := os.MkdirTemp("", "verify")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var stream bytes.Buffer
	if _, err := db.Backup(context.Background(), &stream, kv.BackupMark{}); err != nil {
		return err
	}
	dir = filepath.Join(dir, "restored")
	if err := kv.Restore(context.Background(), &stream, dir, nil); err != nil {
		return err
	}
	return kv.Verify(context.Background(), dir, w)
}

package kv

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/stretchr/testify/require"
)

func TestVerifyMentionsALogThatBreaksOff(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, nil)
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("k"), make([]byte, 1000), NoSync))
	crashed := t.TempDir()
	require.NoError(t, os.CopyFS(crashed, os.DirFS(dir)))
	require.NoError(t, db.Close())
	log := filepath.Join(crashed, manifest.FileName(manifest.FileWAL, db.logNum))
	size, err := os.Stat(log)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(log, size.Size()-10))
	var out strings.Builder
	require.NoError(t, Verify(crashed, &out))
	require.Contains(t, out.String(), "breaks off")
}

func TestVerifyContext(t *testing.T) {
	dir := t.TempDir() + "/store"
	db := openDir(t, dir, nil)
	set(t, db, "k", "v")
	require.NoError(t, db.Compact(nil, nil))
	require.NoError(t, db.Close())
	ctx, cancel := context.WithCancel(t.Context())
	var w strings.Builder
	require.NoError(t, VerifyContext(ctx, dir, &w))
	require.Contains(t, w.String(), "ok")
	cancel()
	w.Reset()
	require.ErrorIs(t, VerifyContext(ctx, dir, &w), context.Canceled)
	require.Empty(t, w.String())
}

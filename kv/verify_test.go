package kv

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

func TestVerifyMentionsALogThatBreaksOff(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, nil)
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("k"), make([]byte, 1000), NoSync))
	crashed := t.TempDir()
	db.settle() // no file is removed during the copy
	require.NoError(t, os.CopyFS(crashed, os.DirFS(dir)))
	require.NoError(t, db.Close())
	log := filepath.Join(crashed, manifest.FileName(manifest.FileWAL, db.logNum))
	size, err := os.Stat(log)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(log, size.Size()-10))
	var out strings.Builder
	require.NoError(t, Verify(t.Context(), crashed, &out))
	require.Contains(t, out.String(), "breaks off")
}

func TestVerifyEndsWithItsContext(t *testing.T) {
	dir := t.TempDir() + "/store"
	db := openDir(t, dir, nil)
	set(t, db, "k", "v")
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.NoError(t, db.Close())
	ctx, cancel := context.WithCancel(t.Context())
	var w strings.Builder
	require.NoError(t, Verify(ctx, dir, &w))
	require.Contains(t, w.String(), "ok")
	cancel()
	w.Reset()
	require.ErrorIs(t, Verify(ctx, dir, &w), context.Canceled)
	require.Empty(t, w.String())
}

// An unreadableFS lets nobody open tables, and calls opened when somebody tries.
type unreadableFS struct {
	vfs.FS
	opened func()
}

func (f unreadableFS) Open(name string) (vfs.ReadFile, error) {
	if filepath.Ext(name) == ".sst" {
		f.opened()
		return nil, fs.ErrPermission
	}
	return f.FS.Open(name)
}

// A verification that is broken off still tells of the files that it could not read.
func TestVerifyThatIsBrokenOffReturnsWhatItFound(t *testing.T) {
	disk := vfs.NewMem()
	db, err := Open("dir", &Options{harness: harness.Harness{FS: disk}})
	require.NoError(t, err)
	set(t, db, "k", "v")
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Close())
	ctx, cancel := context.WithCancel(t.Context())
	err = verifyFS(ctx, unreadableFS{disk, cancel}, "dir", io.Discard)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, fs.ErrPermission)
}

package kv

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	sift "github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// A checkpoint fails at every call in turn, and leaves nothing behind: neither in a
// directory that was there, nor in one that was not.
func TestAFailedCheckpointRemovesItsFiles(t *testing.T) {
	for _, linked := range []bool{true, false} {
		for _, made := range []bool{true, false} {
			f := &vfstest.FaultFS{FS: sift.NewMem()}
			db, err := Open("db", &Options{harness: harness.Harness{FS: f}, MemtableSize: 64 << 10})
			require.NoError(t, err)
			set(t, db, "a", "1")
			require.NoError(t, db.Flush(t.Context()))
			set(t, db, "b", "2")
			require.NoError(t, db.Flush(t.Context()))
			done := false
			for at := 1; !done; at++ {
				if !made {
					require.NoError(t, f.FS.MkdirAll("copy"))
				}
				calls, failed := 0, false
				f.Set(func(c vfstest.Call) (int, error) {
					calls++
					if c.Op == "link" && !linked {
						return 0, errDisk
					}
					failed = failed || calls == at
					if calls == at {
						return c.Bytes / 2, errDisk
					}
					return 0, nil
				})
				err := db.Checkpoint(t.Context(), "copy")
				f.Set(nil)
				require.Empty(t, db.Metrics().Failure, "the store itself is well")
				if err == nil {
					done = !failed // a link that fails is copied
					names, err := f.FS.List("copy")
					require.NoError(t, err)
					for _, name := range names {
						require.NoError(t, f.FS.Remove(filepath.Join("copy", name)))
					}
					if made {
						require.NoError(t, f.FS.Remove("copy"))
					}
				} else {
					require.ErrorIs(t, err, errDisk)
				}
				names, err := f.FS.List("copy")
				require.Equal(t, made, err != nil, "call %d: %v", at, err)
				require.Empty(t, names, "call %d", at)
			}
			require.NoError(t, db.Checkpoint(t.Context(), "copy"))
			require.NoError(t, db.Close())
			db, err = Open("copy", &Options{harness: harness.Harness{FS: f}})
			require.NoError(t, err)
			requireContents(t, storetest.Model{"a": "1", "b": "2"}, db)
			require.NoError(t, db.Close())
		}
	}
}

func TestACheckpointIsTheStoreAtThatTime(t *testing.T) {
	t.Parallel()
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "nested", "checkpoint")
	db := openDir(t, dir, &Options{MemtableSize: 64 << 10, TargetFileSize: 16 << 10, BaseLevelSize: 16 << 10})
	rng := rand.New(rand.NewPCG(6, 6))
	m := storetest.Model{}
	write := func(n int) {
		for range n {
			k, v := fmt.Sprintf("%04d", rng.IntN(2000)), string(randomBytes(rng, 200))
			m[k] = v
			set(t, db, k, v)
		}
	}
	write(2000)
	require.NoError(t, db.Checkpoint(t.Context(), copied))
	then := maps.Clone(m)
	require.Error(t, db.Checkpoint(t.Context(), copied), "it is not empty")
	write(2000)
	require.NoError(t, db.DeleteRange(nil, []byte("1000"), nil))
	m.DeleteRange(nil, []byte("1000"))
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	requireContents(t, m, db)

	c := openDir(t, copied, &Options{ReadOnly: true}) // while the store is open
	requireContents(t, then, c)
	require.NoError(t, c.Close())
	c = openDir(t, copied, nil)
	set(t, c, "only here", "")
	require.NoError(t, c.DeleteRange([]byte("1000"), nil, nil))
	require.NoError(t, c.Compact(t.Context(), nil, nil))
	require.NoError(t, c.Close())
	requireContents(t, m, db)
	require.NoError(t, db.Close())
	require.NoError(t, Verify(t.Context(), dir, &bytes.Buffer{}))
	require.NoError(t, Verify(t.Context(), copied, &bytes.Buffer{}))
}

// Checkpoints and backups do not wait for a version edit that is being written, which may take as long as a request to
// an object store: it is not in them.
func TestCopiesDoNotWaitForAnEdit(t *testing.T) {
	t.Parallel()
	db := openDir(t, "db", &Options{harness: harness.Harness{FS: sift.NewMem()}})
	require.NoError(t, db.Set([]byte("k"), []byte("v"), NoSync))
	require.NoError(t, db.Flush(t.Context()))
	db.manifest.Lock()
	done := make(chan error, 2)
	go func() { done <- db.Checkpoint(t.Context(), "copy") }()
	go func() {
		_, err := db.Backup(t.Context(), io.Discard, BackupMark{})
		done <- err
	}()
	storetest.Until(func() bool { return len(done) == 2 })
	db.manifest.Unlock()
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	require.NoError(t, db.Close())
}

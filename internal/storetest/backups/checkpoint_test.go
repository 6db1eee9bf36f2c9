package backups

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv"
)

// A checkpoint fails at every call in turn, and leaves nothing behind: neither in a
// directory that was there, nor in one that was not.
func TestAFailedCheckpointRemovesItsFiles(t *testing.T) {
	for _, linked := range []bool{true, false} {
		for _, made := range []bool{true, false} {
			f := &vfstest.FaultFS{FS: vfs.NewMem()}
			db, err := kv.Open("db", stores.With(harness.Harness{FS: f}, &kv.Options{MemtableSize: 64 << 10}))
			require.NoError(t, err)
			stores.Set(t, db, "a", "1")
			require.NoError(t, db.Flush(t.Context()))
			stores.Set(t, db, "b", "2")
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
						return 0, storetest.ErrDisk
					}
					failed = failed || calls == at
					if calls == at {
						return c.Bytes / 2, storetest.ErrDisk
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
					require.ErrorIs(t, err, storetest.ErrDisk)
				}
				names, err := f.FS.List("copy")
				require.Equal(t, made, err != nil, "call %d: %v", at, err)
				require.Empty(t, names, "call %d", at)
			}
			require.NoError(t, db.Checkpoint(t.Context(), "copy"))
			require.NoError(t, db.Close())
			db, err = kv.Open("copy", stores.With(harness.Harness{FS: f}, &kv.Options{}))
			require.NoError(t, err)
			storetest.RequireContents(t, storetest.Model{"a": "1", "b": "2"}, db)
			require.NoError(t, db.Close())
		}
	}
}

func TestACheckpointIsTheStoreAtThatTime(t *testing.T) {
	t.Parallel()
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "nested", "checkpoint")
	db := stores.OpenDir(t, dir, &kv.Options{MemtableSize: 64 << 10, TargetFileSize: 16 << 10, BaseLevelSize: 16 << 10})
	rng := rand.New(rand.NewPCG(6, 6))
	m := storetest.Model{}
	write := func(n int) {
		for range n {
			k, v := fmt.Sprintf("%04d", rng.IntN(2000)), string(storetest.RandomBytes(rng, 200))
			m[k] = v
			stores.Set(t, db, k, v)
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
	storetest.RequireContents(t, m, db)

	c := stores.OpenDir(t, copied, &kv.Options{ReadOnly: true}) // while the store is open
	storetest.RequireContents(t, then, c)
	require.NoError(t, c.Close())
	c = stores.OpenDir(t, copied, nil)
	stores.Set(t, c, "only here", "")
	require.NoError(t, c.DeleteRange([]byte("1000"), nil, nil))
	require.NoError(t, c.Compact(t.Context(), nil, nil))
	require.NoError(t, c.Close())
	storetest.RequireContents(t, m, db)
	require.NoError(t, db.Close())
	require.NoError(t, kv.Verify(t.Context(), dir, &bytes.Buffer{}))
	require.NoError(t, kv.Verify(t.Context(), copied, &bytes.Buffer{}))
}

package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/diskcache"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/objstore"
)

// A file that is closed waits for no fetch of another, and takes none from another.
func TestCloseEndsTheWaitForAnothersFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := noise(50, 10*testPage)
		cache := diskcache.Open(vfs.NewMem(), "cache", diskcache.Options{Capacity: 1 << 20})
		cache.Flush()
		store := objstore.NewMem()
		require.NoError(t, store.Put(t.Context(), "file", bytes.NewReader(data), 10*testPage))
		other := NewTables(store, TableOptions{KeepBytes: -1, Cache: cache})
		slow := newRig(t, TableOptions{KeepBytes: -1, Cache: cache})
		slow.write(t, "file", data)
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		slow.before.Store(&hang)
		read := func(f vfs.ReadFile) chan error {
			failed := make(chan error, 1)
			go func() {
				p := make([]byte, 100)
				_, err := f.ReadAt(p, 50)
				if err == nil && !bytes.Equal(p, data[50:150]) {
					err = errors.New("wrong bytes")
				}
				failed <- err
			}()
			synctest.Wait()
			return failed
		}
		first, second := slow.Open("file", 10*testPage), slow.Open("file", 10*testPage)
		third := other.Open("file", 10*testPage)
		fetches := read(first)
		waits, goesOn := read(second), read(third)
		require.NoError(t, second.Close())
		require.Error(t, <-waits)
		require.Empty(t, fetches)
		require.NoError(t, first.Close())
		require.Error(t, <-fetches)
		require.NoError(t, <-goesOn)
		require.NoError(t, third.Close())
		require.NoError(t, other.Close())
		require.NoError(t, cache.Close())
	})
}

func TestTablesAreCachedAcrossRestarts(t *testing.T) {
	mem := vfs.NewMem()
	data := noise(9, 20*testPage+100)
	for _, through := range []bool{false, true} {
		name := fmt.Sprint("file", through)
		c := openCache(t, mem)
		o := TableOptions{Cache: c, CacheName: "store1/", KeepBytes: -1, WriteThrough: through}
		r := newRig(t, o)
		r.write(t, name, data)
		c.Flush()
		read := func(r *rig) int64 {
			return r.requests(objstore.Get, func() {
				p := make([]byte, 3000)
				_, err := r.Open(name, int64(len(data))).ReadAt(p, 10000)
				require.NoError(t, err)
				require.True(t, bytes.Equal(data[10000:13000], p))
			})
		}
		require.Equal(t, through, read(r) == 0)
		require.Zero(t, read(r))
		c.Flush()
		require.NoError(t, c.Close())
		o.Cache = openCache(t, mem)
		again := newRig(t, o)
		require.Zero(t, read(again), "not even the object is needed")
		o.CacheName = "store2/"
		other := newRig(t, o)
		_, err := other.Open(name, int64(len(data))).ReadAt(make([]byte, 10), 10000)
		require.ErrorIs(t, err, fs.ErrNotExist, "another store's file of that name is another")
		require.NoError(t, o.Cache.Close())
	}
}

package remote

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/objstore"
)

// A file that is closed waits for no fetch of another, and takes none from another.
func TestCloseEndsTheWaitForAnothersFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOrigin(t, 10*testPage)
		cache := OpenDiskCache(vfs.NewMem(), "cache", DiskCacheOptions{Capacity: 1 << 20})
		cache.Flush()
		store := objstore.NewMem()
		require.NoError(t, store.Put(t.Context(), "file", bytes.NewReader(o.objects["object0"]), 10*testPage))
		other := NewTables(store, TableOptions{KeepBytes: -1, Cache: cache})
		slow := newRig(t, TableOptions{KeepBytes: -1, Cache: cache})
		slow.write(t, "file", o.objects["object0"])
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		slow.before.Store(&hang)
		read := func(f vfs.ReadFile) chan error {
			failed := make(chan error, 1)
			go func() {
				p := make([]byte, 100)
				_, err := f.ReadAt(p, 50)
				if err == nil && !bytes.Equal(p, o.objects["object0"][50:150]) {
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

package vfs_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/vfs"
)

func TestConcurrentUse(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		t.Run("all", func(t *testing.T) {
			for g := range 8 {
				name := filepath.Join(dir, strconv.Itoa(g))
				t.Run(strconv.Itoa(g), func(t *testing.T) {
					t.Parallel()
					for i := range 20 {
						write(t, fsys, name+".tmp", fmt.Sprint(g, i))
						require.NoError(t, fsys.Rename(name+".tmp", name))
						require.Equal(t, fmt.Sprint(g, i), read(t, fsys, name))
						_, err := fsys.List(dir)
						require.NoError(t, err)
					}
				})
			}
		})
		names, err := fsys.List(dir)
		require.NoError(t, err)
		require.Len(t, names, 8)
	})
}

func TestReadersBesideAWriter(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "f")
		w, err := fsys.Create(name)
		require.NoError(t, err)
		r, err := fsys.Open(name)
		require.NoError(t, err)
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 200 {
				_, err := w.Write([]byte("abcdefgh"))
				assert.NoError(t, err)
			}
		})
		wg.Go(func() {
			for range 20 {
				assert.NoError(t, w.Sync())
			}
		})
		for range 200 {
			size, err := r.Size()
			require.NoError(t, err)
			buf := make([]byte, size)
			n, err := r.ReadAt(buf, 0)
			require.NoError(t, err)
			require.EqualValues(t, size, n)
			require.Equal(t, string(bytes.Repeat([]byte("abcdefgh"), int(size)/8+1)[:size]), string(buf))
		}
		wg.Wait()
		require.NoError(t, w.Close())
		require.NoError(t, r.Close())
	})
}

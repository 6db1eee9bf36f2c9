package diskcache

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/vfs"
)

// Where files cannot be removed, the cache stays within its bound, keeps most of what it has, and says so once.
// When they can, it goes on.
func TestTheBoundHoldsWhereNothingCanBeRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const capacity, pages = 256 * testPage, 1000
		o := newOrigin(t, pages*testPage)
		var stuck atomic.Bool
		fsys := &measuredFS{FS: &hookFS{FS: vfs.NewMem(), before: func(op string) error {
			if op == "remove" && stuck.Load() {
				return syscall.EPERM
			}
			return nil
		}}, dir: "cache"}
		var log bytes.Buffer
		options := Options{Capacity: capacity, Log: slog.New(slog.NewTextHandler(&log, nil))}
		c := openCache(t, fsys, options)
		page := 0
		read := func(n int) {
			for range n {
				o.read(c, "object0", page%pages*testPage, 100)
				page++
				c.Flush()
			}
		}
		read(pages)
		has := c.Metrics().Pages
		require.Greater(t, has, 200)
		stuck.Store(true)
		for range 3 * mostStuck {
			written := c.Metrics().Written
			read(pages / 2)
			require.LessOrEqual(t, c.Metrics().Written-written, int64(capacity/segmentsAtLeast/testPage+1))
			time.Sleep(retryAfter)
		}
		m := c.Metrics()
		require.LessOrEqual(t, fsys.most.Load(), int64(capacity))
		require.EqualValues(t, fsys.now(t), m.Bytes, "what cannot be removed counts")
		require.Greater(t, m.Pages, has/2)
		require.Greater(t, m.Failed, int64(mostStuck))
		require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("cannot be used")))

		stuck.Store(false)
		time.Sleep(retryAfter)
		written := m.Written
		read(pages)
		require.Greater(t, c.Metrics().Written-written, int64(pages*9/10))
		require.LessOrEqual(t, fsys.most.Load(), int64(capacity))
		require.EqualValues(t, fsys.now(t), c.Metrics().Bytes)
		require.NoError(t, c.Close())
	})
}

// One file that cannot be removed costs the cache its room, and no more.
func TestAFileThatCannotBeRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const capacity, pages = 256 * testPage, 1000
		o := newOrigin(t, pages*testPage)
		fsys := &measuredFS{FS: stuckFS{vfs.NewMem(), filepath.Join("cache", segmentName(2))}, dir: "cache"}
		c := openCache(t, fsys, Options{Capacity: capacity})
		for i := range 4 * pages {
			o.read(c, "object0", i%pages*testPage, 100)
			c.Flush()
			if i == 2*pages {
				time.Sleep(retryAfter)
			}
		}
		m := c.Metrics()
		require.Greater(t, m.Written, int64(2*pages))
		require.LessOrEqual(t, fsys.most.Load(), int64(capacity))
		require.EqualValues(t, fsys.now(t), m.Bytes)
		require.Greater(t, m.Pages, 180)
		require.NoError(t, c.Close())

		// It is found again, and of a cache that has become too small for it, it counts.
		const small = 40 * testPage
		c = openCache(t, fsys, Options{Capacity: small})
		for i := range pages {
			o.read(c, "object0", i*testPage, 100)
			c.Flush()
		}
		require.LessOrEqual(t, fsys.now(t), int64(small))
		require.EqualValues(t, fsys.now(t), c.Metrics().Bytes)
		require.NoError(t, c.Close())
	})
}

// A stuckFS cannot remove a file.
type stuckFS struct {
	vfs.FS
	name string
}

func (s stuckFS) Remove(name string) error {
	if name == s.name {
		return syscall.EBUSY
	}
	return s.FS.Remove(name)
}

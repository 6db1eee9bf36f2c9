package kv

import (
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A refusingFS does not open blob files for some calls: the process has too many files open.
type refusingFS struct {
	vfs.FS
	left    atomic.Int64 // calls that fail
	refused atomic.Int64
}

func (f *refusingFS) Open(name string) (vfs.ReadFile, error) {
	if strings.HasSuffix(name, ".blob") && f.left.Add(-1) >= 0 {
		f.refused.Add(1)
		return nil, syscall.EMFILE
	}
	return f.FS.Open(name)
}

// SyncFile implements vfs.FileSyncer.
func (f *refusingFS) SyncFile(name string) error { return f.FS.(vfs.FileSyncer).SyncFile(name) }

// Compact does not try again what fails for want of files: it returns why, and the next call collects.
func TestCompactReturnsWhatKeepsItFromCollecting(t *testing.T) {
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		disk := &refusingFS{FS: vfs.NewMem()}
		db := collected(t, kind, func(o *Options) { o.BlobSpace, o.harness.FS = 1000, disk })
		rng := rand.New(rand.NewPCG(61, uint64(kind)))
		m := storetest.Model{}
		for range 5 {
			overwrite(t, db, m, rng, 60, 100)
		}
		disk.left.Store(100)
		require.ErrorIs(t, db.Compact(t.Context(), nil, nil), syscall.EMFILE)
		require.Less(t, disk.refused.Load(), int64(20))
		disk.left.Store(0)
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		_, space := db.waste()
		require.Less(t, space, 1.06)
		requireContents(t, m, db)
		require.NoError(t, db.Close())
	})
}

package kv

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/stretchr/testify/require"
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
		db := collected(t, kind, func(o *Options) { o.BlobSpace, o.fs = 1000, disk })
		rng := rand.New(rand.NewPCG(61, uint64(kind)))
		m := model{}
		for range 5 {
			overwrite(t, db, m, rng, 60, 100)
		}
		disk.left.Store(100)
		require.ErrorIs(t, db.Compact(nil, nil), syscall.EMFILE)
		require.Less(t, disk.refused.Load(), int64(20))
		disk.left.Store(0)
		require.NoError(t, db.Compact(nil, nil))
		_, space := db.waste()
		require.Less(t, space, 1.06)
		requireContents(t, m, db)
		require.NoError(t, db.Close())
	})
}

// Compact joins blob files of few records, those of SetReader too, and leaves those alone that it has made.
func TestCompactJoinsSmallBlobFiles(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	o := &Options{fs: fsys, SeparateFrom: 100, leastStreamed: 400, blobSize: 8000}
	db, err := Open("db", o)
	require.NoError(t, err)
	m := model{}
	for i := range 60 {
		k := fmt.Sprintf("key%02d", i*37%60)
		if i%2 == 0 {
			m[k] = strings.Repeat(k, 100)
			setReader(t, db, k, m[k], NoSync)
			continue
		}
		m[k] = strings.Repeat(k, 50)
		require.NoError(t, db.Set([]byte(k), []byte(m[k]), NoSync))
		require.NoError(t, db.Flush())
	}
	m["large"] = strings.Repeat("l", 5000)
	setReader(t, db, "large", m["large"], NoSync)
	require.NoError(t, db.Flush())
	large := slices.Max(blobsOnDisk(t, fsys, "db"))
	require.Greater(t, db.Metrics().Blobs.Files, 40)
	require.NoError(t, db.Compact(nil, nil))
	requireContents(t, m, db)
	require.Less(t, requireBlobs(t, db), 8)
	require.Contains(t, blobsOnDisk(t, fsys, "db"), large, "it is not small")
	relocated := db.Metrics().Blobs.Relocated
	require.NotZero(t, relocated)
	require.NoError(t, db.Compact(nil, nil))
	require.Equal(t, relocated, db.Metrics().Blobs.Relocated)
	requireContents(t, m, db)
	require.NoError(t, db.Close())
}

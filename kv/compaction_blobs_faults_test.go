package kv

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// wasteful is a store on a disk that has garbage to collect, and is kept from it. Nothing of it is left to chance, up
// to the moment from which on it may collect.
func wasteful(t *testing.T, kind CompactionStyle, seed uint64, disk vfs.FS) (*DB, storetest.Model) {
	db := collected(t, kind, func(o *Options) {
		o.harness.FS, o.BlobSpace, o.MaxConcurrentCompactions, o.SeparateAtCommit = disk, 1.2, threadsFor(kind),
			seed%2 == 1
	})
	rng := rand.New(rand.NewPCG(11, seed))
	m := storetest.Model{}
	overwrite(t, db, m, rng, 300, 150)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	db.settle()
	db.holdCompactions(true)
	for range 3 {
		overwrite(t, db, m, rng, 60, 150)
		require.NoError(t, db.DeleteRange([]byte("key00040"), []byte("key00060"), nil))
		m.DeleteRange([]byte("key00040"), []byte("key00060"))
	}
	require.NoError(t, db.Set([]byte("last"), nil, nil))
	m["last"] = ""
	return db, m
}

// finished requires that a store with nothing left to do is right, and again when it was opened anew: as to its
// values, its sums, its files and its space.
func finished(t *testing.T, db *DB, m storetest.Model, what string) {
	requireContents(t, m, db)
	require.NoError(t, db.verify(io.Discard), what)
	requireBlobs(t, db)
	over, _ := db.waste()
	require.LessOrEqual(t, over, 0.0, what)
	require.NoError(t, db.Close(), what)
}

// The power is cut before each call that changes the disk while blob files are collected.
func TestPowerCutsWhileBlobFilesAreCollected(t *testing.T) {
	t.Parallel()
	stride := scale.Stride(3, 1)
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		for seed := range uint64(2) {
			var cuts []*crashfs.Disk
			var mu sync.Mutex // a call that began before the end of the watch may still take its cut
			watch, calls, rng := false, 0, rand.New(rand.NewPCG(12, seed))
			var disk *crashfs.FS
			disk = crashfs.New(crashfs.NewDisk(), func() error {
				mu.Lock()
				defer mu.Unlock()
				if calls++; watch && calls%stride == 0 {
					cuts = append(cuts, disk.Disk.Cut(rng))
				}
				return nil
			})
			db, m := wasteful(t, kind, seed, disk)
			mu.Lock()
			watch = true
			mu.Unlock()
			db.holdCompactions(false)
			db.settle()
			mu.Lock()
			watch = false
			mu.Unlock()
			require.Positive(t, db.counters.BlobGCs.Load())
			finished(t, db, m, "no cut")
			require.Greater(t, len(cuts), 20/stride)
			for n, cut := range cuts {
				what := fmt.Sprintf("seed %d, cut %d", seed, n)
				db := collected(t, kind, func(o *Options) {
					o.harness.FS, o.BlobSpace = crashfs.New(cut, nothing),
						1.2
				})
				requireContents(t, m, db)
				db.settle()
				finished(t, db, m, what)
			}
		}
	})
}

// Each call of the file system fails in turn while blob files are collected, once or from then on: nothing is lost, and
// when calls work again all is collected.
func TestFaultsWhileBlobFilesAreCollected(t *testing.T) {
	t.Parallel()
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		for n, fault := range []error{errDisk, syscall.ENOSPC, syscall.EMFILE} {
			if scale.Fewer(n, int(kind)) != n {
				continue // each fault in one style
			}
			for _, fails := range []int{1, 1e9} {
				seed := uint64(n + fails)
				for at, hit := 1+n, true; hit; at += 6 + scale.Stride(48, 12) {
					hit = collectWithFault(t, kind, seed, at, fails, fault)
				}
			}
		}
	})
}

// collectWithFault has some calls of a collection fail, from one on. It reports whether there was that one.
func collectWithFault(t *testing.T, kind CompactionStyle, seed uint64, at, fails int, fault error) (hit bool) {
	what := fmt.Sprintf("seed %d: %d calls from %d on fail: %v", seed, fails, at, fault)
	f := &vfstest.FaultFS{FS: vfs.NewMem()}
	db, m := wasteful(t, kind, seed, f)
	calls := 0
	f.Set(func(c vfstest.Call) (int, error) {
		if calls++; calls < at || calls >= at+fails {
			return 0, nil
		}
		opens := c.Op == "open" || c.Op == "create"
		if errors.Is(fault, syscall.ENOSPC) && !c.Changes || errors.Is(fault, syscall.EMFILE) && !opens {
			return 0, nil
		}
		hit = true
		return c.Bytes / 2, fault
	})
	db.holdCompactions(false)
	storetest.Until(func() bool { // what was to fail has failed, and was tried again, or all is done
		db.mu.Lock()
		defer db.mu.Unlock()
		return db.compactions.Running == 0
	})
	f.Set(nil)
	db.untilResumed()
	storetest.Until(func() bool {
		db.settle()
		over, _ := db.waste()
		db.mu.Lock()
		defer db.mu.Unlock()
		return over <= 0 && len(db.compactions.GC.Excluded) == 0 && !db.compactions.Paused
	})
	requireContents(t, m, db)
	requireRecount(t, db)
	if err := db.Close(); err != nil {
		require.True(t, errors.Is(err, fault), "%s: %v", what, err)
	}
	finished(t, collected(t, kind, func(o *Options) { o.harness.FS, o.BlobSpace = f, 1.2 }), m, what)
	return hit
}

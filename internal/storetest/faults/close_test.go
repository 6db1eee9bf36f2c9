package faults

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv"
)

// The sync of a log that was rotated fails, there is no room to resume, and the next sync
// of the same file says nil and does nothing. Close must not take its word.
func TestCloseReportsWhatAFailedSyncOfARotatedLogLost(t *testing.T) {
	disk := crashfs.NewDisk()
	flushes := make(chan struct{})
	f := &vfstest.FaultFS{FS: &vfstest.GateFS{FS: crashfs.New(disk, storetest.Nothing), Table: func() { <-flushes }}}
	db, err := kv.Open("db", stores.With(harness.Harness{FS: f, Backoff: storetest.Never},
		&kv.Options{MemtableSize: 64 << 10,
			MaxMemtables: 64, CacheSize: -1}))
	require.NoError(t, err)
	want := storetest.Model{}
	for i := range 60 {
		k, v := fmt.Sprintf("%02d", i), strings.Repeat("v", 2000)
		require.NoError(t, db.Set([]byte(k), []byte(v), kv.NoSync))
		want[k] = v
	}
	require.Greater(t, db.Metrics().Memtables, 1, "logs were rotated")
	require.Zero(t, db.Metrics().WALSyncs, "and not synced")
	syncs := 0
	f.Set(func(c vfstest.Call) (int, error) {
		if c.Op == "sync" {
			syncs++
			return 0, syscall.EIO
		}
		return 0, nil
	})
	require.ErrorIs(t, db.Set([]byte("failed"), nil, kv.Sync), kv.ErrReadOnly)
	f.Set(func(c vfstest.Call) (int, error) {
		switch c.Op {
		case "create", "write":
			return 0, syscall.ENOSPC
		case "sync":
			syncs++
			return 0, vfstest.ErrLie
		}
		return 0, nil
	})
	close(flushes)
	err = db.Close()
	require.ErrorIs(t, err, kv.ErrReadOnly, "60 acknowledged writes are not safe")
	require.ErrorIs(t, err, syscall.EIO)
	require.Equal(t, 1, syncs, "no log is synced after one has failed")

	// The process ends, the machine goes on: all that was acknowledged is there, and the
	// commit that failed is too, whole, since the store had not resumed.
	want["failed"] = ""
	db, err = kv.Open("db", stores.With(harness.Harness{FS: crashfs.New(disk, storetest.Nothing)},
		&kv.Options{CacheSize: -1}))
	require.NoError(t, err)
	storetest.RequireContents(t, want, db)
	require.NoError(t, db.Close())
}

// A store that failed and could not resume says so when it closes, whatever failed.
func TestCloseReturnsWhyAStoreCouldNotResume(t *testing.T) {
	for _, op := range []string{"create", "write", "sync"} {
		f := &vfstest.FaultFS{FS: vfs.NewMem()}
		db, err := kv.Open("db", stores.With(harness.Harness{FS: f, Backoff: storetest.Never}, &kv.Options{}))
		require.NoError(t, err)
		require.NoError(t, db.Set([]byte("a"), []byte("1"), kv.Async))
		f.Set(func(c vfstest.Call) (int, error) {
			if c.Op == op {
				return 0, storetest.ErrDisk
			}
			return 0, nil
		})
		if op == "create" {
			require.ErrorIs(t, db.Flush(t.Context()), kv.ErrReadOnly, op)
		} else {
			require.ErrorIs(t, db.Set([]byte("b"), nil, kv.Sync), kv.ErrReadOnly, op)
		}
		err = db.Close()
		require.ErrorIs(t, err, kv.ErrReadOnly, op)
		require.ErrorIs(t, err, storetest.ErrDisk, op)
	}
}

// A flush that fails while the store closes, on a disk that works from then on, is made
// good by Close like one before.
func TestCloseResumesAfterWhatFailsBesideIt(t *testing.T) {
	f := &vfstest.FaultFS{FS: vfs.NewMem()}
	db, err := kv.Open("db", stores.With(harness.Harness{FS: f, Backoff: storetest.Never}, &kv.Options{}))
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("a"), []byte("1"), kv.NoSync))
	closing := make(chan struct{})
	var once sync.Once
	f.Set(func(c vfstest.Call) (int, error) {
		var err error
		if c.Op == "sync" { // of the table
			once.Do(func() {
				err = storetest.ErrDisk
				close(closing)
				storetest.Until(func() bool { return errors.Is(db.Refresh(t.Context()), kv.ErrClosed) })
			})
		}
		return 0, err
	})
	flushed := make(chan error)
	go func() { flushed <- db.Flush(t.Context()) }()
	<-closing
	require.NoError(t, db.Close())
	if err := <-flushed; err != nil { // Close may have made it good before it was looked at
		require.True(t, errors.Is(err, storetest.ErrDisk) || errors.Is(err, kv.ErrClosed), err)
	}
	db, err = kv.Open("db", stores.With(harness.Harness{FS: f}, &kv.Options{}))
	require.NoError(t, err)
	storetest.RequireContents(t, storetest.Model{"a": "1"}, db)
	require.NoError(t, db.Close())
}

package kv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// The sync of a log that was rotated fails, there is no room to resume, and the next sync
// of the same file says nil and does nothing. Close must not take its word.
func TestCloseReportsWhatAFailedSyncOfARotatedLogLost(t *testing.T) {
	disk := crashfs.NewDisk()
	flushes := make(chan struct{})
	f := &vfstest.FaultFS{FS: &vfstest.GateFS{FS: crashfs.New(disk, nothing), Table: func() { <-flushes }}}
	db, err := Open("db", &Options{harness: harness.Harness{FS: f, Backoff: never}, MemtableSize: 64 << 10,
		MaxMemtables: 64, CacheSize: -1})
	require.NoError(t, err)
	want := storetest.Model{}
	for i := range 60 {
		k, v := fmt.Sprintf("%02d", i), strings.Repeat("v", 2000)
		require.NoError(t, db.Set([]byte(k), []byte(v), NoSync))
		want[k] = v
	}
	require.NotEmpty(t, db.imms, "logs were rotated")
	require.Zero(t, db.Metrics().WALSyncs, "and not synced")
	syncs := 0
	f.Set(func(c vfstest.Call) (int, error) {
		if c.Op == "sync" {
			syncs++
			return 0, syscall.EIO
		}
		return 0, nil
	})
	require.ErrorIs(t, db.Set([]byte("failed"), nil, Sync), ErrReadOnly)
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
	require.ErrorIs(t, err, ErrReadOnly, "60 acknowledged writes are not safe")
	require.ErrorIs(t, err, syscall.EIO)
	require.Equal(t, 1, syncs, "no log is synced after one has failed")

	// The process ends, the machine goes on: all that was acknowledged is there, and the
	// commit that failed is too, whole, since the store had not resumed.
	want["failed"] = ""
	db, err = Open("db", &Options{harness: harness.Harness{FS: crashfs.New(disk, nothing)}, CacheSize: -1})
	require.NoError(t, err)
	requireContents(t, want, db)
	require.NoError(t, db.Close())
}

// A store that failed and could not resume says so when it closes, whatever failed.
func TestCloseReturnsWhyAStoreCouldNotResume(t *testing.T) {
	for _, op := range []string{"create", "write", "sync"} {
		f := &vfstest.FaultFS{FS: vfs.NewMem()}
		db, err := Open("db", &Options{harness: harness.Harness{FS: f, Backoff: never}})
		require.NoError(t, err)
		require.NoError(t, db.Set([]byte("a"), []byte("1"), Async))
		f.Set(func(c vfstest.Call) (int, error) {
			if c.Op == op {
				return 0, errDisk
			}
			return 0, nil
		})
		if op == "create" {
			require.ErrorIs(t, db.Flush(t.Context()), ErrReadOnly, op)
		} else {
			require.ErrorIs(t, db.Set([]byte("b"), nil, Sync), ErrReadOnly, op)
		}
		err = db.Close()
		require.ErrorIs(t, err, ErrReadOnly, op)
		require.ErrorIs(t, err, errDisk, op)
	}
}

// Ingest refuses a store whose last commit has failed: what is in the log of that
// commit has the sequence number that the files would be put after.
func TestIngestRefusesAStoreThatHasFailed(t *testing.T) {
	for _, mode := range []RecoveryMode{PointInTime, TolerateTornTail} {
		disk := crashfs.NewDisk()
		crash := crashfs.New(disk, nothing)
		f := &vfstest.FaultFS{FS: crash}
		db, err := Open("db", &Options{harness: harness.Harness{FS: f, Backoff: never}, CacheSize: -1})
		require.NoError(t, err)
		require.NoError(t, db.Set([]byte("a"), []byte("1"), Sync))
		require.NoError(t, db.Flush(t.Context()))
		file := "new.sst"
		writeIngestible(t, crash, file, "b")
		// The write fails while the ingest waits in the queue after it.
		in := newIngest(t.Context(), db, &IngestOptions{})
		require.NoError(t, in.begin())
		bringIn(t, in, file)
		failOnce(f, "sync")
		require.ErrorIs(t, db.Set([]byte("c"), []byte("failed"), Sync), errDisk)
		require.ErrorIs(t, exclusive(db, in.install), ErrReadOnly)
		in.files.TakeBack()
		in.end()
		after := disk.CutTo(100, rand.New(rand.NewPCG(1, 1)))
		again, err := Open("db", &Options{harness: harness.Harness{FS: crashfs.New(after, nothing)}, CacheSize: -1,
			RecoveryMode: mode})
		require.NoError(t, err)
		ok, err := again.Has([]byte("b"))
		require.NoError(t, err)
		require.False(t, ok)
		require.NoError(t, again.Close())
		require.NoError(t, db.Close())
	}
}

func writeIngestible(t *testing.T, fsys vfs.FS, name string, keys ...string) {
	t.Helper()
	out, err := fsys.Create(name)
	require.NoError(t, err)
	w := sstable.NewWriter(out, nil)
	for _, k := range keys {
		require.NoError(t, w.Add(base.MakeKey([]byte(k), 0, base.KindSet), []byte("ingested")))
	}
	_, err = w.Finish()
	require.NoError(t, errors.Join(err, out.Sync(), out.Close()))
}

// A store that was closed and then lost power opens in every recovery mode: the mark
// that says that it was closed is as durable as what comes before it.
func TestAClosedStoreThatLostPowerOpensInEveryMode(t *testing.T) {
	t.Parallel()
	for mode := range numRecoveryModes {
		disk := crashfs.NewDisk()
		db, err := Open("db", &Options{harness: harness.Harness{FS: crashfs.New(disk, nothing)}, CacheSize: -1})
		require.NoError(t, err)
		require.NoError(t, db.Set([]byte("a"), []byte("1"), Sync))
		require.NoError(t, db.Set([]byte("b"), []byte("2"), Async))
		require.NoError(t, db.Close())
		after := disk.CutTo(0, nil)
		db, err = Open("db", &Options{harness: harness.Harness{FS: crashfs.New(after, nothing)}, CacheSize: -1,
			RecoveryMode: mode})
		require.NoError(t, err, mode)
		requireContents(t, storetest.Model{"a": "1", "b": "2"}, db)
		require.NoError(t, db.Close())
	}
}

// Flush and Close at the same time: under the race detector.
func TestFlushBesideClose(t *testing.T) {
	for range 50 {
		db, err := Open("", &Options{InMemory: true})
		require.NoError(t, err)
		var done sync.WaitGroup
		for i := range 4 {
			done.Go(func() {
				for db.Set([]byte{byte(i)}, nil, Async) == nil {
					if err := db.Flush(t.Context()); err != nil {
						require.ErrorIs(t, err, ErrClosed)
					}
				}
			})
		}
		require.NoError(t, db.Set([]byte("k"), nil, Sync))
		require.NoError(t, db.Close())
		done.Wait()
	}
}

// A flush that fails while the store closes, on a disk that works from then on, is made
// good by Close like one before.
func TestCloseResumesAfterWhatFailsBesideIt(t *testing.T) {
	f := &vfstest.FaultFS{FS: vfs.NewMem()}
	db, err := Open("db", &Options{harness: harness.Harness{FS: f, Backoff: never}})
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("a"), []byte("1"), NoSync))
	closing := make(chan struct{})
	var once sync.Once
	f.Set(func(c vfstest.Call) (int, error) {
		var err error
		if c.Op == "sync" { // of the table
			once.Do(func() {
				err = errDisk
				close(closing)
				storetest.Until(func() bool { return db.closed.Load() })
			})
		}
		return 0, err
	})
	flushed := make(chan error)
	go func() { flushed <- db.Flush(t.Context()) }()
	<-closing
	require.NoError(t, db.Close())
	if err := <-flushed; err != nil { // Close may have made it good before it was looked at
		require.True(t, errors.Is(err, errDisk) || errors.Is(err, ErrClosed), err)
	}
	db, err = Open("db", &Options{harness: harness.Harness{FS: f}})
	require.NoError(t, err)
	requireContents(t, storetest.Model{"a": "1"}, db)
	require.NoError(t, db.Close())
}

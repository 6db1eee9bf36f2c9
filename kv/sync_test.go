package kv

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// unsyncedLost is what a power cut leaves at the least.
func unsyncedLost(disk *crashfs.Disk) *crashfs.Disk {
	return disk.CutTo(0, nil)
}

// What was acknowledged before a Sync survives a power cut right after it, wherever the log is:
// in several logs too, none of whose memtables are flushed.
func TestAPowerCutRightAfterSync(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]func(objstore.Store) *objects.Config{
		"disk": func(objstore.Store) *objects.Config { return nil },
		"local log": func(s objstore.Store) *objects.Config {
			return &objects.Config{Store: s, LocalLog: true, Grace: -1}
		},
		"remote log": func(s objstore.Store) *objects.Config {
			return &objects.Config{Store: s, Grace: -1, LogInterval: time.Hour} // no log is put before Sync
		},
	} {
		t.Run(name, func(t *testing.T) {
			disk, bucket, flushes := crashfs.NewDisk(), storetest.NewFrozenStore(), make(chan struct{})
			o := &Options{harness: harness.Harness{FS: &vfstest.GateFS{FS: crashfs.New(disk, nothing),
				Table: func() { <-flushes }}},
				Objects: config(bucket), MaxMemtables: 8}
			db, err := Open("db", o)
			require.NoError(t, err)
			want := storetest.Model{}
			check := func(complete bool) {
				t.Helper()
				o := &Options{}
				var after *crashfs.Disk
				left := bucket.Cut(func() { after = unsyncedLost(disk) })
				o.harness.FS, o.Objects = crashfs.New(after, nothing), config(left)
				again, err := Open("db", o)
				require.NoError(t, err)
				if complete {
					requireContents(t, want, again)
				} else {
					require.Less(t, len(contents(t, again, nil)), len(want))
				}
				require.NoError(t, again.Close())
			}
			for i := range 12 {
				k := strconv.Itoa(i)
				want[k] = k
				require.NoError(t, db.Set([]byte(k), []byte(k), []*WriteOptions{NoSync, Async}[i%2]))
				if i%5 == 2 {
					db.mu.Lock() // nobody leads: the test does
					require.NoError(t, db.rotateTo(0, nil))
					db.mu.Unlock()
				}
				if i%4 == 3 {
					check(false)
					require.NoError(t, db.Sync(t.Context()))
					check(true)
				}
			}
			close(flushes)
			require.NoError(t, db.Close())
		})
	}
}

// A Sync for which there is nothing to do neither writes nor syncs.
func TestSyncWithNothingToDo(t *testing.T) {
	calls := &vfstest.FaultFS{FS: vfs.NewMem()}
	db := openDir(t, "db", &Options{harness: harness.Harness{FS: calls}})
	changes := 0
	idle := func(what string) {
		t.Helper()
		db.settle()
		calls.Set(func(c vfstest.Call) (int, error) {
			if c.Op == "write" || c.Op == "sync" || c.Op == "syncdir" {
				changes++
			}
			return 0, nil
		})
		syncs := db.Metrics().WALSyncs
		for range 3 {
			require.NoError(t, db.Sync(t.Context()))
		}
		require.Zero(t, changes, what)
		require.Equal(t, syncs, db.Metrics().WALSyncs, what)
		calls.Set(nil)
	}
	idle("a new store")
	require.NoError(t, db.Set([]byte("a"), nil, Sync))
	idle("after a commit with Sync")
	set(t, db, "b", "1")
	require.NoError(t, db.Sync(t.Context()))
	idle("after Sync")
	require.NoError(t, db.NewBatch().Commit(Sync))
	idle("after an empty batch")
	set(t, db, "c", "1")
	require.NoError(t, db.Flush(t.Context()))
	idle("after a flush")
	require.NoError(t, db.Ingest(t.Context(), []string{ingestFile(t, calls, "file", nil, "d=1")}, nil))
	idle("after an ingest")
	require.NoError(t, db.Close())
	db = openDir(t, "db", &Options{harness: harness.Harness{FS: calls}})
	idle("after an opening")
	require.NoError(t, db.Close())
}

// Syncs that come while one is under way share the next one, with commits that want one.
func TestConcurrentSyncsShareOne(t *testing.T) {
	db, fs := openHeld(t, nil)
	set(t, db, "a", "")
	outcome := fs.hold(func() error { return db.Sync(t.Context()) })
	set(t, db, "b", "beside it")
	require.True(t, has(t, db, "b"))
	before := fs.logs.Load()
	var others sync.WaitGroup
	for n := range 15 {
		others.Go(func() {
			err := error(nil)
			if n%5 == 4 {
				err = db.Set([]byte{byte(n)}, nil, Sync)
			} else {
				err = db.Sync(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	storetest.Until(func() bool { _, waiting := db.commits.Queue(); return waiting == 15 })
	fs.release(nil)
	others.Wait()
	require.NoError(t, <-outcome)
	require.Equal(t, before+1, fs.logs.Load())
	require.EqualValues(t, 2, db.Metrics().WALSyncs)
	require.NoError(t, db.Close())
}

// What Sync finds visible and not durable may be of a commit whose sync is under way.
func TestSyncBesideACommitWithSync(t *testing.T) {
	db, fs := openHeld(t, nil)
	outcome := fs.hold(setSync(db, "a"))
	set(t, db, "b", "makes a visible")
	synced := make(chan error, 1)
	go func() { synced <- db.Sync(t.Context()) }()
	storetest.Until(func() bool { _, waiting := db.commits.Queue(); return waiting == 1 })
	require.Empty(t, synced)
	fs.release(nil)
	require.NoError(t, <-outcome)
	require.NoError(t, <-synced)
	require.EqualValues(t, 2, fs.logs.Load())
	require.NoError(t, db.Close())
}

// A Sync that fails makes the store read-only until it has resumed, and the log that failed is
// not synced again. What was acknowledged stays, and is durable then. If the sync itself has
// failed, the error says that all it was for is visible.
func TestAFailedSync(t *testing.T) {
	for _, op := range []string{"write", "sync"} {
		f := &vfstest.FaultFS{FS: vfs.NewMem()}
		// In one file: that of large values would be synced beside it, and fail too.
		db := openDir(t, "db", &Options{harness: harness.Harness{FS: f, Backoff: quickBackoff}, SeparateFrom: -1})
		want := storetest.Model{"a": "1", "b": "2"}
		set(t, db, "a", "1")
		require.NoError(t, db.Set([]byte("b"), []byte("2"), Async))
		failures := 0
		f.Set(func(c vfstest.Call) (int, error) {
			if c.Op == op {
				failures++
			}
			if c.Op == op || c.Op == "create" { // nor is there a new log
				return 0, errDisk
			}
			return 0, nil
		})
		err := db.Sync(t.Context())
		require.Equal(t, op == "sync", errors.Is(err, ErrNotDurable))
		for _, err := range []error{err, db.Sync(t.Context()), db.Set([]byte("c"), nil, NoSync)} {
			require.ErrorIs(t, err, ErrReadOnly, op)
			require.ErrorIs(t, err, errDisk, op)
		}
		requireContents(t, want, db)
		storetest.Until(func() bool { return db.Metrics().ResumeAttempts > 0 })
		f.Set(nil)
		require.Equal(t, 1, failures)
		db.untilResumed()
		require.NoError(t, db.Sync(t.Context()))
		set(t, db, "d", "3")
		require.NoError(t, db.Sync(t.Context()))
		want["d"] = "3"
		db.abandonLikeACrash(t)
		db = openDir(t, "db", &Options{harness: harness.Harness{FS: f}})
		requireContents(t, want, db)
		require.NoError(t, db.Close())
	}
}

// Numbers that were given to what failed are of no write: a Sync does not make them visible, and
// what is closed after it is whole.
func TestSyncAfterWritesThatFailed(t *testing.T) {
	fails := map[string]func(*DB, *vfstest.FaultFS) error{
		"a commit": func(db *DB, f *vfstest.FaultFS) error {
			failOnce(f, "sync")
			return db.Set([]byte("b"), []byte("2"), Sync)
		},
		"an ingest": func(db *DB, f *vfstest.FaultFS) error {
			file := ingestFile(t, f, "file", nil, "b=2")
			if err := db.Flush(t.Context()); err != nil {
				return err
			}
			writes := 0
			f.Set(func(c vfstest.Call) (int, error) {
				if c.Op == "write" {
					writes++
				}
				if c.Op == "write" && writes == 2 { // the first is of the file's copy, this one of the manifest
					return 0, errDisk
				}
				return 0, nil
			})
			return db.Ingest(t.Context(), []string{file}, nil)
		},
	}
	for name, fail := range fails {
		t.Run(name, func(t *testing.T) {
			f := &vfstest.FaultFS{FS: vfs.NewMem()}
			db := openDir(t, "db", &Options{harness: harness.Harness{FS: f, Backoff: quickBackoff}})
			require.NoError(t, db.Set([]byte("a"), []byte("1"), Async))
			require.ErrorIs(t, fail(db, f), errDisk)
			db.untilResumed()
			visible := db.visible.Load()
			require.Less(t, visible, uint64(db.commits.LastSeq()))
			require.NoError(t, db.Sync(t.Context()))
			require.Equal(t, visible, db.visible.Load())
			require.NoError(t, db.Close())
			db = openDir(t, "db", &Options{harness: harness.Harness{FS: f}})
			requireContents(t, storetest.Model{"a": "1"}, db)
			require.NoError(t, db.Close())
		})
	}
}

func TestSyncOfAStoreThatTakesNoWrites(t *testing.T) {
	fs := vfs.NewMem()
	db := openDir(t, "db", &Options{harness: harness.Harness{FS: fs}})
	set(t, db, "a", "")
	require.NoError(t, db.Close())
	require.ErrorIs(t, db.Sync(t.Context()), ErrClosed)
	require.ErrorIs(t, db.Sync(t.Context()), ErrClosed)
	db = openDir(t, "db", &Options{harness: harness.Harness{FS: fs}, ReadOnly: true})
	require.ErrorIs(t, db.Sync(t.Context()), ErrReadOnly)
	require.NoError(t, db.Close())
}

// Who waits for a sync that does not end goes when the context does. So does a Sync that waits
// behind a stalled writer.
func TestSyncEndsWithItsContext(t *testing.T) {
	db, fs := openHeld(t, nil)
	set(t, db, "a", "")
	outcome := fs.hold(func() error { return db.Sync(t.Context()) })
	set(t, db, "b", "")
	ctx, cancel := context.WithCancel(t.Context())
	given := make(chan error, 1)
	go func() { given <- db.Sync(ctx) }()
	storetest.Until(func() bool { _, waiting := db.commits.Queue(); return waiting == 1 })
	cancel()
	require.ErrorIs(t, <-given, context.Canceled)
	fs.release(nil)
	require.NoError(t, <-outcome)
	require.EqualValues(t, 1, fs.logs.Load())
	require.NoError(t, db.Sync(t.Context()))
	require.EqualValues(t, 2, fs.logs.Load())
	require.NoError(t, db.Sync(ctx), "there is nothing to wait for")
	require.NoError(t, db.Close())

	s := newStalledStore(t)
	leader := s.commit(t.Context(), "leader")
	s.queued(0)
	ctx, cancel = context.WithCancel(t.Context())
	go func() { given <- s.db.Sync(ctx) }()
	s.queued(1)
	kept := make(chan error, 1)
	go func() { kept <- s.db.Sync(t.Context()) }()
	s.queued(2)
	cancel()
	require.ErrorIs(t, <-given, context.Canceled)
	close(s.gate)
	require.NoError(t, <-leader)
	require.NoError(t, <-kept)
	s.finish("leader")
}

// Writers on all processors, beside each other and Syncs, for the race detector.
func TestSyncsBesideWriters(t *testing.T) {
	db := openMem(t, &Options{MemtableSize: 64 << 10})
	var group sync.WaitGroup
	for w := range 6 {
		group.Go(func() {
			for i := range 200 {
				var err error
				switch (w + i) % 3 {
				case 0:
					err = db.Sync(t.Context())
				case 1:
					ctx, cancel := context.WithCancel(t.Context())
					go cancel()
					if err = db.Sync(ctx); errors.Is(err, context.Canceled) {
						err = nil
					}
				default:
					o := []*WriteOptions{Sync, NoSync, Async}[i%3]
					err = db.Set(fmt.Appendf(nil, "%d/%d", w, i), make([]byte, 500), o)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	require.NoError(t, db.Sync(t.Context()))
	require.EqualValues(t, db.visible.Load(), db.commits.LastSeq())
}

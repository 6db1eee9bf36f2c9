package kv

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// A log that failed is never written or synced again, and what the failed commit
// left in it does not come back, although all its bytes are there.
func TestAFailedCommitDoesNotComeBack(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"write", "sync"} {
		f := &vfstest.FaultFS{FS: vfs.NewMem()}
		o := &Options{harness: harness.Harness{FS: f, Backoff: quickBackoff}}
		db, err := Open("db", o)
		require.NoError(t, err)
		require.NoError(t, db.Set([]byte("a"), []byte("1"), Sync))
		require.NoError(t, db.Set([]byte("b"), []byte("in memory alone"), Async))
		broken := db.commits.Log()
		failOnce(f, op)
		err = db.Set([]byte("c"), []byte("failed"), Sync)
		require.ErrorIs(t, err, errDisk, op)
		require.ErrorIs(t, err, ErrReadOnly, op)
		require.ErrorContains(t, err, "since writing the log failed")
		want := storetest.Model{"a": "1", "b": "in memory alone"}
		requireContents(t, want, db)
		db.untilResumed()
		require.NotEqual(t, broken.ID(), db.commits.Log().ID())
		db.settle()
		_, err = f.Stat(filepath.Join("db", fmt.Sprintf("%06d.wal", broken.ID())))
		require.ErrorIs(t, err, fs.ErrNotExist, "the broken log is gone")
		require.NoError(t, db.Set([]byte("d"), []byte("2"), Sync))
		want["d"] = "2"
		db.abandonLikeACrash(t)
		db, err = Open("db", &Options{harness: harness.Harness{FS: f}})
		require.NoError(t, err)
		requireContents(t, want, db)
		require.NoError(t, db.Close())
	}
}

// What Async writes left in the log's buffer cannot be written. That is known before
// anybody else may lead the pipeline, the resumer included: told later, the failure of the
// old log would be taken for one of the log that replaced it.
func TestAFailureOfTheLogIsKnownBeforeTheLogCanBeReplaced(t *testing.T) {
	t.Parallel()
	f := &vfstest.FaultFS{FS: vfs.NewMem()}
	o := &Options{harness: harness.Harness{FS: f, Backoff: quickBackoff}}
	var db *DB
	leading := make(chan bool, 1)
	o.Events.Failed = func(error) {
		led, _ := db.commits.Queue()
		leading <- led
	}
	db, err := Open("db", o)
	require.NoError(t, err)
	failOnce(f, "write")
	require.NoError(t, db.Set([]byte("a"), []byte("1"), Async))
	require.True(t, <-leading)
	db.untilResumed()
	m := db.Metrics()
	require.EqualValues(t, 1, m.Failures)
	require.EqualValues(t, 1, m.Resumes)
	require.NoError(t, db.Set([]byte("b"), []byte("2"), Sync))
	requireContents(t, storetest.Model{"a": "1", "b": "2"}, db)
	require.NoError(t, db.Close())
}

// The power fails at every call between a failed commit and the end of resuming.
// The commit may come back if the store had not resumed, whole; nothing else is
// lost or added.
func TestPowerCutsWhileAStoreResumes(t *testing.T) {
	t.Parallel()
	cuts := 0
	for seed := range uint64(scale.Count(20, 40)) {
		rng := rand.New(rand.NewPCG(seed, 21))
		mem := crashfs.NewDisk()
		type moment struct {
			disk    *crashfs.Disk
			resumed bool
		}
		var clones []moment
		var watching, resumed atomic.Bool
		crash := crashfs.New(mem, func() error {
			if watching.Load() {
				h := resumed.Load()
				clones = append(clones, moment{mem.Cut(rng), h})
			}
			return nil
		})
		f := &vfstest.FaultFS{FS: crash}
		o := &Options{harness: harness.Harness{FS: f, Backoff: quickBackoff}, MemtableSize: 64 << 10, CacheSize: -1}
		db, err := Open("db", o)
		require.NoError(t, err)
		want := storetest.Model{}
		for i := range 3 + rng.IntN(40) {
			k := fmt.Sprintf("%02d", i)
			require.NoError(t, db.Set([]byte(k), make([]byte, rng.IntN(5000)), NoSync))
			v, err := db.Get([]byte(k))
			require.NoError(t, err)
			want[k] = string(v)
		}
		require.NoError(t, db.Set([]byte("last"), nil, Sync))
		want["last"] = ""
		db.waitForBackground()
		failOnce(f, []string{"write", "sync"}[seed%2])
		watching.Store(true)
		require.ErrorIs(t, db.Set([]byte("zzz"), []byte("failed"), Sync), errDisk)
		db.untilResumed()
		resumed.Store(true)
		require.NoError(t, db.Set([]byte("last"), nil, Sync))
		watching.Store(false)
		require.NoError(t, db.Close())
		for _, c := range clones {
			db, err := Open("db", &Options{harness: harness.Harness{FS: crashfs.New(c.disk, nothing)},
				MemtableSize: 64 << 10, CacheSize: -1})
			require.NoError(t, err, "seed %d", seed)
			all := want
			if ok, err := db.Has([]byte("zzz")); ok {
				require.NoError(t, err)
				require.False(t, c.resumed, "seed %d: a failed commit has come back after resuming", seed)
				all = storetest.Model{"zzz": "failed"}
				maps.Copy(all, want)
			}
			requireContents(t, all, db)
			require.NoError(t, db.Close())
			cuts++
		}
	}
	require.NotZero(t, cuts)
	t.Logf("%d power cuts", cuts)
}

// While a store has failed, writers get the error at once and readers answers.
func TestWritersAreNotKeptWaitingByAFailure(t *testing.T) {
	f := &vfstest.FaultFS{FS: vfs.NewMem()}
	db, err := Open("db", &Options{harness: harness.Harness{FS: f, Backoff: never}})
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("a"), []byte("1"), Sync))
	f.Set(func(c vfstest.Call) (int, error) {
		if c.Changes {
			return 0, errDisk
		}
		return 0, nil
	})
	require.ErrorIs(t, db.Set([]byte("b"), nil, Sync), errDisk)
	for range 100 {
		require.ErrorIs(t, db.Set([]byte("b"), nil, Async), ErrReadOnly)
	}
	requireContents(t, storetest.Model{"a": "1"}, db)
	require.Zero(t, db.Metrics().ResumeAttempts)
	err = db.Close()
	require.ErrorIs(t, err, errDisk, "Close cannot write either, and says so")
	f.Set(nil)
	db, err = Open("db", &Options{harness: harness.Harness{FS: f}})
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

// Close makes a last attempt to save what is in memory alone.
func TestCloseResumesAStoreIfItCan(t *testing.T) {
	for _, how := range []string{"failed before", "fails in Close"} {
		f := &vfstest.FaultFS{FS: vfs.NewMem()}
		db, err := Open("db", &Options{harness: harness.Harness{FS: f, Backoff: never}})
		require.NoError(t, err)
		require.NoError(t, db.Set([]byte("a"), []byte("1"), Async))
		failOnce(f, "sync")
		if how == "failed before" {
			require.ErrorIs(t, db.Set([]byte("b"), nil, Sync), errDisk)
		}
		require.NoError(t, db.Close(), how)
		db, err = Open("db", &Options{harness: harness.Harness{FS: f}, RecoveryMode: Absolute})
		require.NoError(t, err)
		requireContents(t, storetest.Model{"a": "1"}, db)
		require.NoError(t, db.Close())
	}
}

// The directory is moved away under the store, and put back.
func TestARemovedDirectory(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dir, away := filepath.Join(parent, "db"), filepath.Join(parent, "away")
	o := &Options{harness: harness.Harness{Backoff: quickBackoff}}
	withoutLeaks(func() {
		db := openDir(t, dir, o)
		require.NoError(t, db.Set([]byte("a"), []byte("1"), Sync))
		require.NoError(t, db.Flush(t.Context()))
		require.NoError(t, db.Set([]byte("b"), []byte("2"), Sync))
		requireContents(t, storetest.Model{"a": "1", "b": "2"}, db) // the table is open from now on
		require.NoError(t, os.Rename(dir, away))
		err := db.Flush(t.Context())
		require.ErrorIs(t, err, ErrReadOnly)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorIs(t, err, ErrDirectoryMoved)
		require.ErrorContains(t, err, "move the store's directory back to "+dir)
		require.ErrorIs(t, db.Set([]byte("c"), nil, nil), ErrReadOnly)
		requireContents(t, storetest.Model{"a": "1", "b": "2"}, db)

		// Another store in its place is left alone.
		other := openDir(t, dir, nil)
		require.NoError(t, other.Set([]byte("x"), nil, nil))
		require.NoError(t, other.Close())
		before := readDir(t, dir)
		require.ErrorIs(t, db.resume(true), ErrDirectoryMoved)
		require.Equal(t, before, readDir(t, dir))
		require.NoError(t, os.RemoveAll(dir))

		require.NoError(t, os.Rename(away, dir))
		db.untilResumed()
		require.NoError(t, db.Set([]byte("c"), []byte("3"), Sync))
		requireContents(t, storetest.Model{"a": "1", "b": "2", "c": "3"}, db)
		require.NoError(t, db.Close())
		require.NoError(t, Verify(t.Context(), dir, io.Discard))
	})
}

// A disk that is slow at times makes nothing wrong. Every hundredth call takes
// milliseconds.
func TestLatencySpikes(t *testing.T) {
	f := &vfstest.FaultFS{FS: vfs.NewMem()}
	rng := rand.New(rand.NewPCG(5, 5))
	f.Set(func(vfstest.Call) (int, error) {
		if rng.IntN(100) == 0 {
			time.Sleep(time.Duration(rng.IntN(5)) * time.Millisecond)
		}
		return 0, nil
	})
	withoutLeaks(func() {
		o := randomOptions(rand.New(rand.NewPCG(6, 6)))
		o.harness.FS = f
		db, err := Open("db", o)
		require.NoError(t, err)
		var writers sync.WaitGroup
		for w := range 4 {
			writers.Go(func() {
				for i := range 150 {
					k := fmt.Appendf(nil, "%d/%03d", w, i)
					if err := db.Set(k, []byte(strings.Repeat(string(k), 50)),
						[]*WriteOptions{Sync, NoSync, Async}[i%3]); err != nil {
						t.Error(err)
					}
				}
			})
		}
		writers.Wait()
		want := storetest.Model{}
		for w := range 4 {
			for i := range 150 {
				k := fmt.Sprintf("%d/%03d", w, i)
				want[k] = strings.Repeat(k, 50)
			}
		}
		requireContents(t, want, db)
		require.NoError(t, db.Close())
	})
}

// A compaction that cannot write keeps nobody from writing, until level 0 is full:
// then writers get the cause. It is tried again by itself.
func TestACompactionThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	f := &vfstest.FaultFS{FS: vfs.NewMem()}
	o := &Options{harness: harness.Harness{FS: f, Backoff: quickBackoff}, MemtableSize: 64 << 10,
		L0CompactionThreshold: 2, L0SlowdownThreshold: 4, L0StopThreshold: 5}
	db, err := Open("db", o)
	require.NoError(t, err)
	var broken atomic.Bool
	broken.Store(true)
	f.Set(func(c vfstest.Call) (int, error) {
		if c.Op == "create" && broken.Load() && strings.Contains(string(debug.Stack()), "job.(*Compaction).merge") {
			return 0, errDisk
		}
		return 0, nil
	})
	want, i := storetest.Model{}, 0
	for err == nil {
		require.Less(t, i, 100)
		k := fmt.Sprintf("%03d", i)
		if i++; db.Set([]byte(k), []byte(k), nil) == nil {
			want[k] = k
		}
		err = db.Flush(t.Context())
		if err == nil && db.Metrics().Levels[0].Files >= o.L0StopThreshold {
			err = db.makeRoomForTest()
		}
	}
	require.ErrorIs(t, err, ErrReadOnly)
	require.ErrorIs(t, err, errDisk)
	require.ErrorContains(t, err, "since a compaction failed")
	requireContents(t, want, db)
	require.NotZero(t, db.Metrics().FailedCompactions)
	broken.Store(false)
	storetest.Until(func() bool { return db.Metrics().Compactions > 0 }) // no event tells of the first attempt
	require.NoError(t, db.Set([]byte("x"), []byte("y"), nil))
	want["x"] = "y"
	requireContents(t, want, db)
	require.NoError(t, db.Close())
}

// makeRoomForTest asks for a new memtable as a writer does.
func (d *DB) makeRoomForTest() error {
	return d.commits.Exclusive(context.Background(), func() error {
		size := int(d.opts.MemtableSize) + 1
		mem, err := d.makeRoom(context.Background(), size, size, nil)
		if err == nil {
			mem.Release(size)
		}
		return err
	})
}

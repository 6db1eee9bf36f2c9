package kv

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

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

package kv

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	sift "github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// requireFull checks that an error says that the disk is full, and what to do.
func requireFull(t *testing.T, err error, dir string) {
	t.Helper()
	require.ErrorIs(t, err, ErrReadOnly)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, "free space on the file system of "+dir)
}

// The disk is full after every byte of a log's record in turn.
func TestNoSpaceAtEveryByteOfALogRecord(t *testing.T) {
	t.Parallel()
	record := 0
	fill := func(room int) (fits bool) {
		f := &vfstest.FaultFS{FS: sift.NewMem()}
		o := &Options{harness: harness.Harness{FS: f, Backoff: quickBackoff}, MemtableSize: 64 << 10, CacheSize: -1}
		db, err := Open("db", o)
		require.NoError(t, err)
		require.NoError(t, db.Set([]byte("a"), []byte("1"), Sync))
		size := db.commits.Log().Size()
		f.Set(vfstest.Quota(room))
		err = db.Set([]byte("b"), []byte("a value of some length"), Sync)
		record = int(db.commits.Log().Size() - size)
		want := storetest.Model{"a": "1", "b": "a value of some length"}
		if fits = err == nil; !fits {
			delete(want, "b")
			requireFull(t, err, "db")
			requireFull(t, db.Set([]byte("c"), nil, Async), "db")
			requireContents(t, want, db)
			f.Set(nil)
			db.untilResumed()
		}
		f.Set(nil)
		requireContents(t, want, db)
		require.NoError(t, db.Set([]byte("d"), []byte("2"), Sync))
		want["d"] = "2"
		requireContents(t, want, db)
		m := db.Metrics()
		require.Equal(t, !fits, m.Failures == 1)
		require.Equal(t, m.Failures, m.Resumes)
		require.GreaterOrEqual(t, m.ResumeAttempts, m.Resumes)
		require.NoError(t, db.Close())
		db, err = Open("db", &Options{harness: harness.Harness{FS: f}, RecoveryMode: Absolute, MemtableSize: 64 << 10})
		require.NoError(t, err)
		requireContents(t, want, db)
		require.NoError(t, db.Close())
		return fits
	}
	for room := 0; !fill(room); room++ {
		require.Less(t, room, record)
	}
	require.Greater(t, record, 40)
}

// The disk is full after every byte of a sorted file in turn, when memtables are
// flushed and when files are compacted.
func TestNoSpaceAtEveryByteOfASortedFile(t *testing.T) {
	t.Parallel()
	stride := scale.Stride(13, 5)
	for _, c := range []struct {
		work  func(db *DB) error
		apart int
	}{
		{work: func(db *DB) error { return db.Flush(t.Context()) }},
		{work: func(db *DB) error { return db.Flush(t.Context()) }, apart: 15},
		{work: func(db *DB) error { return db.Compact(t.Context(), nil, nil) }},
	} {
		work, fits, files := c.work, false, 6
		if c.apart > 0 {
			files++
		}
		for room := 0; !fits; room += stride {
			f := &vfstest.FaultFS{FS: sift.NewMem()}
			o := &Options{harness: harness.Harness{FS: f, Backoff: quickBackoff}, BlockSize: 64, MemtableSize: 64 << 10,
				CacheSize: -1, SeparateFrom: c.apart}
			db, err := Open("db", o)
			require.NoError(t, err)
			want := storetest.Model{}
			for i := range 20 {
				k := fmt.Sprintf("key/%02d", i)
				set(t, db, k, "the value of "+k)
				want[k] = "the value of " + k
			}
			f.Set(vfstest.Quota(room))
			err = work(db)
			if fits = err == nil; !fits {
				require.ErrorIs(t, err, syscall.ENOSPC)
				requireContents(t, want, db)
			}
			f.Set(nil)
			db.untilResumed()
			require.NoError(t, work(db), "room for %d bytes", room)
			requireContents(t, want, db)
			db.settle()
			names, err := f.FS.List("db")
			require.NoError(t, err)
			require.Len(t, names, files, "CURRENT, LOCK, SIFTKV-OPTIONS, a manifest, a log, a table, perhaps a blob "+
				"file: partial files go: %q", names)
			require.NoError(t, db.Close())
			require.NoError(t, verifyOn(f), "room for %d bytes", room)
		}
	}
}

// verifyOn verifies the store "db" of a file system.
func verifyOn(f sift.FS) error {
	db, err := Open("db", &Options{harness: harness.Harness{FS: f}, ReadOnly: true})
	if err != nil {
		return err
	}
	if err := db.verify(io.Discard); err != nil {
		return err
	}
	return db.Close()
}

// A smallDisk is a file system with room for some megabytes.
type smallDisk struct {
	dir  string
	fs   sift.FS
	fill func() // takes all the room that is left
	free func() // gives it back
}

// newSmallDisk mounts a small tmpfs, or where that is not allowed makes a file
// system in memory with a quota.
func newSmallDisk(t *testing.T) smallDisk {
	dir := t.TempDir()
	if runtime.GOOS == "linux" && os.Geteuid() == 0 &&
		exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", dir).Run() == nil {
		t.Log("a tmpfs of 8 MiB")
		// the test's context has ended
		t.Cleanup(func() { require.NoError(t, exec.Command("umount", dir).Run()) })
		ballast := filepath.Join(dir, "ballast")
		return smallDisk{
			dir: filepath.Join(dir, "db"), fs: sift.OS,
			fill: func() {
				f, err := os.Create(ballast)
				require.NoError(t, err)
				for _, size := range []int{1 << 16, 1 << 12} {
					for err == nil {
						_, err = f.Write(make([]byte, size))
					}
					require.ErrorIs(t, err, syscall.ENOSPC)
					err = nil
				}
				require.NoError(t, f.Close())
			},
			free: func() { require.NoError(t, os.Remove(ballast)) },
		}
	}
	t.Log("a quota in memory")
	f := &vfstest.FaultFS{FS: sift.NewMem()}
	return smallDisk{dir: "db", fs: f, fill: func() { f.Set(vfstest.Quota(100_000)) }, free: func() { f.Set(nil) }}
}

// A real file system fills up under a store, and somebody makes room.
func TestAFullFileSystem(t *testing.T) {
	t.Parallel()
	disk := newSmallDisk(t)
	var failures []error
	o := &Options{harness: harness.Harness{FS: disk.fs, Backoff: quickBackoff}, MemtableSize: 64 << 10,
		TargetFileSize: 64 << 10, BaseLevelSize: 64 << 10}
	o.Events.Failed = func(err error) { failures = append(failures, err) }
	withoutLeaks(func() {
		db := openDir(t, disk.dir, o)
		want, n := storetest.Model{}, 0
		write := func() error {
			k := fmt.Sprintf("%04d", n)
			v := k + string(make([]byte, 2000))
			err := db.Set([]byte(k), []byte(v), []*WriteOptions{Sync, NoSync, Async}[n%3])
			if err == nil {
				n++
				want[k] = v
			}
			return err
		}
		for range 100 {
			require.NoError(t, write())
		}
		for round := range 3 {
			require.NoError(t, db.Flush(t.Context()))
			db.waitForBackground()
			disk.fill()
			var err error
			for err == nil {
				err = write()
			}
			requireFull(t, err, disk.dir)
			requireFull(t, db.Flush(t.Context()), disk.dir)
			require.Contains(t, db.Metrics().Failure, "free space")
			requireContents(t, want, db)
			disk.free()
			db.untilResumed()
			require.NoError(t, write(), "round %d", round)
			requireContents(t, want, db)
		}
		m := db.Metrics()
		require.GreaterOrEqual(t, m.Failures, uint64(3))
		require.Equal(t, m.Failures, m.Resumes)
		require.NoError(t, db.Close())
		require.Len(t, failures, int(m.Failures))
		requireFull(t, failures[0], disk.dir)
		db = openDir(t, disk.dir, &Options{harness: harness.Harness{FS: disk.fs}, RecoveryMode: Absolute})
		requireContents(t, want, db)
		require.NoError(t, db.verify(io.Discard))
		require.NoError(t, db.Close())
	})
}

package faults

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv"
)

// The disk is full after every byte of a log's record in turn.
func TestNoSpaceAtEveryByteOfALogRecord(t *testing.T) {
	t.Parallel()
	record := 0
	fill := func(room int) (fits bool) {
		f := &vfstest.FaultFS{FS: vfs.NewMem()}
		o := stores.With(harness.Harness{FS: f, Backoff: storetest.Quick},
			&kv.Options{MemtableSize: 64 << 10, CacheSize: -1})
		db, err := kv.Open("db", o)
		require.NoError(t, err)
		require.NoError(t, db.Set([]byte("a"), []byte("1"), kv.Sync))
		logSize := func() int64 {
			size, err := f.Stat(storetest.NewestFile(t, f, "db", manifest.FileWAL))
			require.NoError(t, err)
			return size
		}
		size := logSize()
		f.Set(vfstest.Quota(room))
		err = db.Set([]byte("b"), []byte("a value of some length"), kv.Sync)
		want := storetest.Model{"a": "1", "b": "a value of some length"}
		if fits = err == nil; !fits {
			delete(want, "b")
			stores.RequireFull(t, err, "db")
			stores.RequireFull(t, db.Set([]byte("c"), nil, kv.Async), "db")
			storetest.RequireContents(t, want, db)
			f.Set(nil)
			stores.UntilResumed(db)
		}
		if f.Set(nil); fits {
			record = int(logSize() - size)
		}
		storetest.RequireContents(t, want, db)
		require.NoError(t, db.Set([]byte("d"), []byte("2"), kv.Sync))
		want["d"] = "2"
		storetest.RequireContents(t, want, db)
		m := db.Metrics()
		require.Equal(t, !fits, m.Failures == 1)
		require.Equal(t, m.Failures, m.Resumes)
		require.GreaterOrEqual(t, m.ResumeAttempts, m.Resumes)
		require.NoError(t, db.Close())
		db, err = kv.Open("db", stores.With(harness.Harness{FS: f},
			&kv.Options{RecoveryMode: kv.Absolute, MemtableSize: 64 << 10}))
		require.NoError(t, err)
		storetest.RequireContents(t, want, db)
		require.NoError(t, db.Close())
		return fits
	}
	room := 0
	for !fill(room) {
		room++
		require.Less(t, room, 1000)
	}
	require.LessOrEqual(t, room, record)
	require.Greater(t, record, 40)
}

// The disk is full after every byte of a sorted file in turn, when memtables are
// flushed and when files are compacted.
func TestNoSpaceAtEveryByteOfASortedFile(t *testing.T) {
	t.Parallel()
	stride := scale.Stride(13, 5)
	for _, c := range []struct {
		work      func(db *kv.DB) error
		separated int
	}{
		{work: func(db *kv.DB) error { return db.Flush(t.Context()) }},
		{work: func(db *kv.DB) error { return db.Flush(t.Context()) }, separated: 15},
		{work: func(db *kv.DB) error { return db.Compact(t.Context(), nil, nil) }},
	} {
		work, fits, files := c.work, false, 6
		if c.separated > 0 {
			files++
		}
		for room := 0; !fits; room += stride {
			f := &vfstest.FaultFS{FS: vfs.NewMem()}
			o := stores.With(harness.Harness{FS: f, Backoff: storetest.Quick},
				&kv.Options{BlockSize: 64, MemtableSize: 64 << 10,
					CacheSize: -1, SeparateFrom: c.separated})
			db, err := kv.Open("db", o)
			require.NoError(t, err)
			want := storetest.Model{}
			for i := range 20 {
				k := fmt.Sprintf("key/%02d", i)
				stores.Set(t, db, k, "the value of "+k)
				want[k] = "the value of " + k
			}
			f.Set(vfstest.Quota(room))
			err = work(db)
			if fits = err == nil; !fits {
				require.ErrorIs(t, err, syscall.ENOSPC)
				storetest.RequireContents(t, want, db)
			}
			f.Set(nil)
			stores.UntilResumed(db)
			require.NoError(t, work(db), "room for %d bytes", room)
			storetest.RequireContents(t, want, db)
			harness.Settle(db)
			names, err := f.FS.List("db")
			require.NoError(t, err)
			require.Len(t, names, files, "CURRENT, LOCK, SIFTKV-OPTIONS, a manifest, a log, a table, perhaps a blob "+
				"file: partial files go: %q", names)
			require.NoError(t, db.Close())
			require.NoError(t, verifyOn(f), "room for %d bytes", room)
		}
	}
}

// A smallDisk is a file system with room for some megabytes.
type smallDisk struct {
	dir  string
	fs   vfs.FS
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
			dir: filepath.Join(dir, "db"), fs: vfs.OS,
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
	f := &vfstest.FaultFS{FS: vfs.NewMem()}
	return smallDisk{dir: "db", fs: f, fill: func() { f.Set(vfstest.Quota(100_000)) }, free: func() { f.Set(nil) }}
}

// A real file system fills up under a store, and room is made.
func TestAFullFileSystem(t *testing.T) {
	t.Parallel()
	disk := newSmallDisk(t)
	var mu sync.Mutex // writers tell of a failure, and flushes, which may still do so when the store has resumed
	var failures []error
	o := stores.With(harness.Harness{FS: disk.fs, Backoff: storetest.Quick}, &kv.Options{MemtableSize: 64 << 10,
		TargetFileSize: 64 << 10, BaseLevelSize: 64 << 10})
	o.Events.Failed = func(err error) {
		mu.Lock()
		defer mu.Unlock()
		failures = append(failures, err)
	}
	storetest.WithoutLeaks(func() {
		db := stores.OpenDir(t, disk.dir, o)
		want, n := storetest.Model{}, 0
		write := func() error {
			k := fmt.Sprintf("%04d", n)
			v := k + string(make([]byte, 2000))
			err := db.Set([]byte(k), []byte(v), []*kv.WriteOptions{kv.Sync, kv.NoSync, kv.Async}[n%3])
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
			harness.Settle(db)
			disk.fill()
			var err error
			for err == nil {
				err = write()
			}
			stores.RequireFull(t, err, disk.dir)
			stores.RequireFull(t, db.Flush(t.Context()), disk.dir)
			require.Contains(t, db.Metrics().Failure, "free space")
			storetest.RequireContents(t, want, db)
			disk.free()
			stores.UntilResumed(db)
			require.NoError(t, write(), "round %d", round)
			storetest.RequireContents(t, want, db)
		}
		m := db.Metrics()
		require.GreaterOrEqual(t, m.Failures, uint64(3))
		require.Equal(t, m.Failures, m.Resumes)
		require.NoError(t, db.Close())
		require.Len(t, failures, int(m.Failures))
		stores.RequireFull(t, failures[0], disk.dir)
		db = stores.OpenDir(t, disk.dir, stores.With(harness.Harness{FS: disk.fs},
			&kv.Options{RecoveryMode: kv.Absolute}))
		storetest.RequireContents(t, want, db)
		require.NoError(t, storetest.Verify(db, io.Discard))
		require.NoError(t, db.Close())
	})
}

// verifyOn verifies the store "db" of a file system.
func verifyOn(fsys vfs.FS) error {
	db, err := kv.Open("db", stores.With(harness.Harness{FS: fsys}, &kv.Options{ReadOnly: true}))
	if err != nil {
		return err
	}
	if err := storetest.Verify(db, io.Discard); err != nil {
		return err
	}
	return db.Close()
}

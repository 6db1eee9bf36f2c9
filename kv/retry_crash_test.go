package kv

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
)

// What a call that failed has left is there for the next call to see, and not yet durable. These
// tests let every call that changes the disk fail, alone or with all that follow it, which is
// how a process dies; then they try once more, on a disk that works, and cut the power. What
// the second attempt promised must be there.

// retryThenCut calls try on a disk that start makes, until it succeeds although every
// call may have failed, and gives check what a power cut leaves after each success.
func retryThenCut(t *testing.T, start func() *crashfs.Disk, try func(vfs.FS) error, check func(vfs.FS, string)) {
	t.Helper()
	for _, dies := range []bool{false, true} {
		failures := 0
		for failAt := 1; ; failAt++ {
			mem, calls := start(), 0
			err := try(crashfs.New(mem, func() error {
				if calls++; calls == failAt || dies && calls > failAt {
					return errDisk
				}
				return nil
			}))
			failed := calls >= failAt
			what := fmt.Sprintf("call %d fails, the process dies: %v", failAt, dies)
			if err != nil {
				failures++
				require.ErrorIs(t, err, errDisk, what)
				require.NoError(t, try(crashfs.New(mem, nothing)), what)
			}
			check(crashfs.New(mem.CutTo(0, nil), nothing), what)
			if !failed {
				break
			}
		}
		require.Greater(t, failures, 5)
	}
}

func TestPowerCutAfterAnOpenThatIsRepeated(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"db", "a/b/c"} {
		write := func(fs vfs.FS) error {
			db, err := Open(dir, &Options{harness: harness.Harness{FS: fs}, MemtableSize: 64 << 10,
				CacheSize: 64 << 10})
			if err != nil {
				return err
			}
			err = db.Set([]byte("key"), []byte("value"), Sync)
			return errors.Join(err, db.Close())
		}
		check := func(fs vfs.FS, what string) {
			db, err := Open(dir, &Options{harness: harness.Harness{FS: fs}, ReadOnly: true, MemtableSize: 64 << 10,
				CacheSize: 64 << 10})
			require.NoError(t, err, what)
			requireContents(t, storetest.Model{"key": "value"}, db)
			require.NoError(t, db.Close())
		}
		retryThenCut(t, crashfs.NewDisk, write, check)

		before := crashfs.NewDisk()
		require.NoError(t, write(crashfs.New(before, nothing)))
		again := func() *crashfs.Disk { return before.CutTo(0, nil) }
		retryThenCut(t, again, write, check)
	}
}

func TestPowerCutAfterARestoreThatIsRepeated(t *testing.T) {
	t.Parallel()
	inTablesAndApart(t, testPowerCutAfterARestoreThatIsRepeated)
}

func testPowerCutAfterARestoreThatIsRepeated(t *testing.T, from int) {
	db, want := backupStoreFrom(t, from)
	stream, _ := backUp(t, db, BackupMark{})
	retryThenCut(t, crashfs.NewDisk, func(fs vfs.FS) error {
		return Restore(t.Context(), bytes.NewReader(stream), "a/b", &Options{harness: harness.Harness{FS: fs}})
	}, func(fs vfs.FS, what string) {
		got, err := Open("a/b", &Options{harness: harness.Harness{FS: fs}, ReadOnly: true})
		require.NoError(t, err, what)
		requireContents(t, want, got)
		require.NoError(t, got.Close())
	})
}

// A checkpoint that was cut short keeps its directory: the next one goes elsewhere.
func TestPowerCutAfterACheckpointThatIsRepeated(t *testing.T) {
	t.Parallel()
	before := crashfs.NewDisk()
	small := Options{MemtableSize: 64 << 10, CacheSize: 64 << 10, harness: harness.Harness{FS: crashfs.New(before,
		nothing)}}
	db, err := Open("db", &small)
	require.NoError(t, err)
	want := addTables(t, db, storetest.Model{}, "first", 2)
	require.NoError(t, db.Close())
	again := func() *crashfs.Disk { return before.CutTo(0, nil) }
	dir := ""
	retryThenCut(t, again, func(fs vfs.FS) error {
		o := small
		o.harness.FS = fs
		db, err := Open("db", &o)
		if err != nil {
			return err
		}
		if dir = "a/b"; !isEmpty(fs, dir) {
			dir = "a/c"
		}
		return errors.Join(db.Checkpoint(t.Context(), dir), db.Close())
	}, func(fs vfs.FS, what string) {
		got, err := Open(dir, &Options{harness: harness.Harness{FS: fs}, ReadOnly: true, CacheSize: 64 << 10})
		require.NoError(t, err, what)
		requireContents(t, want, got)
		require.NoError(t, got.Close())
	})
}

func isEmpty(fs vfs.FS, dir string) bool {
	names, err := fs.List(dir)
	return err != nil || len(names) == 0
}

func TestPowerCutAfterAnIngestThatIsRepeated(t *testing.T) {
	t.Parallel()
	before := crashfs.NewDisk()
	works := crashfs.New(before, nothing)
	ingestFile(t, works, "in.sst", nil, "key=value")
	require.NoError(t, errors.Join(works.SyncFile("in.sst"), works.SyncDir(".")))
	small := Options{MemtableSize: 64 << 10, CacheSize: 64 << 10, harness: harness.Harness{FS: works}}
	db, err := Open("db", &small)
	require.NoError(t, err)
	set(t, db, "before", "1")
	require.NoError(t, db.Close())
	again := func() *crashfs.Disk { return before.CutTo(0, nil) }
	for _, copied := range []bool{false, true} {
		retryThenCut(t, again, func(fs vfs.FS) error {
			o := small
			o.harness.FS = fs
			db, err := Open("db", &o)
			if err != nil {
				return err
			}
			err = db.Ingest(t.Context(), []string{"in.sst"}, &IngestOptions{Link: !copied})
			return errors.Join(err, db.Close())
		}, func(fs vfs.FS, what string) {
			got, err := Open("db", &Options{harness: harness.Harness{FS: fs}, ReadOnly: true, CacheSize: 64 << 10})
			require.NoError(t, err, what)
			requireContents(t, storetest.Model{"before": "1", "key": "value"}, got)
			require.NoError(t, got.Close())
		})
	}
}

package powercuts

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/kv"
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
					return storetest.ErrDisk
				}
				return nil
			}))
			failed := calls >= failAt
			what := fmt.Sprintf("call %d fails, the process dies: %v", failAt, dies)
			if err != nil {
				failures++
				require.ErrorIs(t, err, storetest.ErrDisk, what)
				require.NoError(t, try(crashfs.New(mem, storetest.Nothing)), what)
			}
			check(crashfs.New(mem.CutTo(0, nil), storetest.Nothing), what)
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
			db, err := kv.Open(dir, stores.With(harness.Harness{FS: fs}, &kv.Options{MemtableSize: 64 << 10,
				CacheSize: 64 << 10}))
			if err != nil {
				return err
			}
			err = db.Set([]byte("key"), []byte("value"), kv.Sync)
			return errors.Join(err, db.Close())
		}
		check := func(fs vfs.FS, what string) {
			db, err := kv.Open(dir, stores.With(harness.Harness{FS: fs}, &kv.Options{ReadOnly: true,
				MemtableSize: 64 << 10, CacheSize: 64 << 10}))
			require.NoError(t, err, what)
			storetest.RequireContents(t, storetest.Model{"key": "value"}, db)
			require.NoError(t, db.Close())
		}
		retryThenCut(t, crashfs.NewDisk, write, check)

		before := crashfs.NewDisk()
		require.NoError(t, write(crashfs.New(before, storetest.Nothing)))
		again := func() *crashfs.Disk { return before.CutTo(0, nil) }
		retryThenCut(t, again, write, check)
	}
}

func TestPowerCutAfterARestoreThatIsRepeated(t *testing.T) {
	t.Parallel()
	stores.InTablesAndSeparated(t, testPowerCutAfterARestoreThatIsRepeated)
}

func testPowerCutAfterARestoreThatIsRepeated(t *testing.T, from int) {
	db, want := stores.OfTables(t, from)
	stream, _ := stores.BackUp(t, db, kv.BackupMark{})
	retryThenCut(t, crashfs.NewDisk, func(fs vfs.FS) error {
		return kv.Restore(t.Context(), bytes.NewReader(stream), "a/b", stores.With(harness.Harness{FS: fs},
			&kv.Options{}))
	}, func(fs vfs.FS, what string) {
		got, err := kv.Open("a/b", stores.With(harness.Harness{FS: fs}, &kv.Options{ReadOnly: true}))
		require.NoError(t, err, what)
		storetest.RequireContents(t, want, got)
		require.NoError(t, got.Close())
	})
}

// A checkpoint that was cut short keeps its directory: the next one goes elsewhere.
func TestPowerCutAfterACheckpointThatIsRepeated(t *testing.T) {
	t.Parallel()
	before := crashfs.NewDisk()
	small := *stores.With(harness.Harness{FS: crashfs.New(before, storetest.Nothing)},
		&kv.Options{MemtableSize: 64 << 10, CacheSize: 64 << 10})
	db, err := kv.Open("db", &small)
	require.NoError(t, err)
	want := stores.AddTables(t, db, storetest.Model{}, "first", 2)
	require.NoError(t, db.Close())
	again := func() *crashfs.Disk { return before.CutTo(0, nil) }
	dir := ""
	retryThenCut(t, again, func(fs vfs.FS) error {
		o := small
		harness.Of(&o).FS = fs
		db, err := kv.Open("db", &o)
		if err != nil {
			return err
		}
		if dir = "a/b"; !isEmpty(fs, dir) {
			dir = "a/c"
		}
		return errors.Join(db.Checkpoint(t.Context(), dir), db.Close())
	}, func(fs vfs.FS, what string) {
		got, err := kv.Open(dir, stores.With(harness.Harness{FS: fs}, &kv.Options{ReadOnly: true, CacheSize: 64 << 10}))
		require.NoError(t, err, what)
		storetest.RequireContents(t, want, got)
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
	works := crashfs.New(before, storetest.Nothing)
	storetest.IngestFile(t, works, "in.sst", nil, "key=value")
	require.NoError(t, errors.Join(works.SyncFile("in.sst"), works.SyncDir(".")))
	small := *stores.With(harness.Harness{FS: works}, &kv.Options{MemtableSize: 64 << 10, CacheSize: 64 << 10})
	db, err := kv.Open("db", &small)
	require.NoError(t, err)
	stores.Set(t, db, "before", "1")
	require.NoError(t, db.Close())
	again := func() *crashfs.Disk { return before.CutTo(0, nil) }
	for _, copied := range []bool{false, true} {
		retryThenCut(t, again, func(fs vfs.FS) error {
			o := small
			harness.Of(&o).FS = fs
			db, err := kv.Open("db", &o)
			if err != nil {
				return err
			}
			err = db.Ingest(t.Context(), []string{"in.sst"}, &kv.IngestOptions{Link: !copied})
			return errors.Join(err, db.Close())
		}, func(fs vfs.FS, what string) {
			got, err := kv.Open("db", stores.With(harness.Harness{FS: fs},
				&kv.Options{ReadOnly: true, CacheSize: 64 << 10}))
			require.NoError(t, err, what)
			storetest.RequireContents(t, storetest.Model{"before": "1", "key": "value"}, got)
			require.NoError(t, got.Close())
		})
	}
}

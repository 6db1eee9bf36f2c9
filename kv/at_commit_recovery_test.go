package kv

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// A call that fails while a log's values are read says nothing of them: the store is not opened, in any mode, or has
// all that was written. The next open has it all.
func TestAFailedReadEndsNoLog(t *testing.T) {
	t.Parallel()
	for _, mode := range []RecoveryMode{PointInTime, TolerateTornTail, SkipCorrupt} {
		for at, failed := 1, true; failed; at++ {
			f := &vfstest.FaultFS{FS: vfs.NewMem()}
			o := &Options{harness: harness.Harness{FS: f, MinStreamed: 2000}, MemtableSize: 64 << 10, SeparateFrom: 100,
				SeparateAtCommit: true, RecoveryMode: mode}
			db, err := Open("db", o)
			require.NoError(t, err)
			m := storetest.Model{}
			for i := range 3 {
				k := fmt.Sprintf("key%03d", i)
				m[k] = strings.Repeat(k, 100)
				require.NoError(t, db.Set([]byte(k), []byte(m[k]), Sync))
			}
			m["streamed"] = strings.Repeat("s", 3000)
			setReader(t, db, "streamed", m["streamed"], Sync)
			db.abandonLikeACrash(t)
			var calls atomic.Int64
			f.Set(func(c vfstest.Call) (int, error) {
				if c.Changes {
					return 0, nil
				}
				if calls.Add(1) == int64(at) {
					return 0, errDisk
				}
				return 0, nil
			})
			db, err = Open("db", o)
			failed = calls.Load() >= int64(at)
			f.Set(nil)
			if err != nil {
				require.ErrorIs(t, err, errDisk)
				db, err = Open("db", o)
				require.NoError(t, err)
			}
			requireContents(t, m, db)
			require.NoError(t, db.Close())
		}
	}
}

// A blob file that is missing, or has no header, is damage also where nothing proves that the log was synced: both
// were durable before the log had a handle.
func TestAMissingBlobFileEndsNoLog(t *testing.T) {
	t.Parallel()
	for _, streamed := range []bool{false, true} {
		for what, damage := range map[string]func(name string){
			"missing":   func(name string) { require.NoError(t, vfs.OS.Remove(name)) },
			"no header": func(name string) { rewrite(t, name, flip(3)) },
			"empty":     func(name string) { rewrite(t, name, func([]byte) []byte { return nil }) },
		} {
			dir := t.TempDir()
			o := &Options{SeparateFrom: 100, SeparateAtCommit: !streamed, harness: harness.Harness{MinStreamed: 10}}
			db, err := Open(dir, o)
			require.NoError(t, err)
			v := strings.Repeat("v", 200)
			if streamed {
				setReader(t, db, "k", v, Sync)
			} else {
				require.NoError(t, db.Set([]byte("k"), []byte(v), Sync))
			}
			db.abandonLikeACrash(t)
			names := blobsOnDisk(t, vfs.OS, dir)
			require.Len(t, names, 1)
			damage(dir + "/" + names[0])
			for _, mode := range []RecoveryMode{PointInTime, TolerateTornTail} {
				o.RecoveryMode = mode
				_, err = Open(dir, o)
				require.ErrorIs(t, err, ErrCorruption, what)
				require.ErrorContains(t, err, names[0])
			}
			_, err = OpenReadOnly(dir, nil)
			require.ErrorIs(t, err, ErrCorruption, what)
			require.ErrorContains(t, err, names[0])
			o.RecoveryMode = SkipCorrupt
			db, err = Open(dir, o)
			require.NoError(t, err)
			require.NoError(t, db.Close())
		}
	}
}

// A flush closes the blob files of the logs whose memtables it writes.
func TestFlushesCloseBlobFilesOfLogs(t *testing.T) {
	f := &vfstest.FaultFS{FS: vfs.NewMem()}
	db, err := Open("db", &Options{harness: harness.Harness{FS: f}, SeparateFrom: 100, SeparateAtCommit: true})
	require.NoError(t, err)
	open := 0
	f.Set(func(c vfstest.Call) (int, error) {
		switch {
		case c.Op == "create":
			open++
		case c.Op == "close" && c.Changes:
			open--
		}
		return 0, nil
	})
	for range 10 {
		require.NoError(t, db.Set([]byte("k"), make([]byte, 1000), NoSync))
		require.NoError(t, db.Flush(t.Context()))
	}
	require.NoError(t, db.Sync(t.Context())) // which closes logs that are in tables
	db.settle()
	require.Zero(t, open, "the log in use took the place of the first")
	f.Set(nil)
	require.NoError(t, db.Close())
}

// What commits and SetReader write to blob files is counted, once, whatever a flush makes of it.
func TestBlobMetricsCountCommits(t *testing.T) {
	fsys := vfs.NewMem()
	db, err := Open("db", &Options{harness: harness.Harness{FS: fsys, MinStreamed: 5000}, SeparateFrom: 100,
		SeparateAtCommit: true})
	require.NoError(t, err)
	for i := range 10 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "key%d", i), make([]byte, 1000), NoSync))
	}
	b := db.Metrics().Blobs
	require.Equal(t, b.Committed, b.Written)
	require.InDelta(t, 10_500, b.Written, 400)
	setReader(t, db, "streamed", strings.Repeat("s", 20_000), NoSync)
	require.NoError(t, db.Flush(t.Context()))
	m := db.Metrics()
	require.EqualValues(t, m.Blobs.Bytes, m.Blobs.Written)
	require.Equal(t, m.Blobs.Committed, m.Blobs.Written)
	require.Greater(t, m.WriteBytes, uint64(30_000))
	require.InDelta(t, 1.05, m.WriteAmplification(), 0.05)
	requireBlobMetrics(t, db)
	require.NoError(t, db.Close())
}

// Where large values go may be another place at each open, after a crash too.
func TestWhereValuesLieMayChangeAtEachOpen(t *testing.T) {
	t.Parallel()
	fsys, m := vfs.NewMem(), storetest.Model{}
	for round := range 24 {
		o := &Options{harness: harness.Harness{FS: fsys, MinStreamed: 300}, MemtableSize: 64 << 10, Merger: Append(",")}
		switch round % 4 {
		case 0:
			o.SeparateFrom, o.SeparateAtCommit = 50, true
		case 1:
			o.SeparateFrom = -1
		case 2:
			o.SeparateFrom = 200
		case 3:
			o.SeparateFrom, o.SeparateAtCommit = 1, true
		}
		db, err := Open("db", o)
		require.NoError(t, err)
		requireContents(t, m, db)
		for i := range 40 {
			k := fmt.Sprintf("key%02d", (i*7+round)%60)
			v := fmt.Sprintf("%0*d", 1+(i*37)%400, round)
			m[k] = v
			if len(v) > 300 {
				setReader(t, db, k, v, Sync)
			} else {
				require.NoError(t, db.Set([]byte(k), []byte(v), Sync))
			}
			if i%9 == 0 {
				require.NoError(t, db.Merge([]byte(k), []byte("x"), Sync))
				m[k] += ",x"
			}
			if i%13 == 0 {
				require.NoError(t, db.DeleteRange([]byte("key10"), []byte("key12"), Sync))
				m.DeleteRange([]byte("key10"), []byte("key12"))
			}
		}
		if round%5 == 0 {
			require.NoError(t, db.Compact(t.Context(), nil, nil))
		}
		requireContents(t, m, db)
		requireBlobs(t, db)
		if round%3 == 0 {
			db.abandonLikeACrash(t)
		} else {
			require.NoError(t, db.Close())
		}
	}
}

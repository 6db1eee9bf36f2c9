package kv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/sstable"
)

// countWrites returns what adds up the bytes that a store writes.
func countWrites(f *vfstest.FaultFS) *int64 {
	written := new(int64)
	f.Set(func(c vfstest.Call) (int, error) {
		*written += int64(c.Bytes)
		return 0, nil
	})
	return written
}

// A load of values of 16 KiB writes each of them once, and its tables beside them.
func TestValuesAreWrittenOnceAtCommit(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of bytes")
	for _, atCommit := range []bool{false, true} {
		f := &vfstest.FaultFS{FS: vfs.NewMem()}
		db, err := Open("db", &Options{harness: harness.Harness{FS: f}, SeparateFrom: 4 << 10,
			SeparateAtCommit: atCommit,
			MemtableSize:     4 << 20, Compression: sstable.NoCompression})
		require.NoError(t, err)
		written := countWrites(f)
		rng := rand.New(rand.NewPCG(1, 1))
		const n, size = 2000, 16 << 10
		value := randomBytes(rng, size)
		for i := range n {
			value[i%size]++
			require.NoError(t, db.Set(fmt.Appendf(nil, "key%06d", rng.IntN(1e6)), value, NoSync))
		}
		require.NoError(t, db.Flush(t.Context()))
		db.settle()
		f.Set(nil)
		ratio := float64(*written) / (n * size)
		t.Logf("at commit %v: %.3f bytes written per byte", atCommit, ratio)
		if atCommit {
			require.Less(t, ratio, 1.1)
		} else {
			require.Greater(t, ratio, 1.9)
		}
		requireBlobs(t, db)
		require.NoError(t, db.Close())
	}
}

// Values that were set apart by their commits, among others, are read from memtables, after a new start with the log
// alone, after a flush and after a compaction; what is committed is what the batch says, and stays so.
func TestSeparateAtCommit(t *testing.T) {
	fsys := vfs.NewMem()
	clock := &storetest.Clock{}
	o := &Options{harness: harness.Harness{FS: fsys, MinStreamed: 2000}, SeparateFrom: 100, SeparateAtCommit: true,
		MemtableSize: 64 << 10, Merger: Append(","),
		Clock: clock.Time}
	db, err := Open("db", o)
	require.NoError(t, err)
	m := storetest.Model{}
	b := db.NewBatch()
	for i := range 20 {
		k, v := fmt.Sprintf("key%03d", i), strings.Repeat(fmt.Sprint(i, " "), 1+i*i)
		m[k] = v
		switch i % 5 {
		case 0:
			require.NoError(t, db.SetTTL([]byte(k), []byte(v), time.Hour, NoSync))
		case 1:
			require.NoError(t, b.Set([]byte(k), []byte(v)))
			require.NoError(t, b.Delete([]byte("key999")))
			require.NoError(t, b.Merge([]byte(k), []byte("more")))
			require.NoError(t, b.DeleteRange([]byte("key998"), nil))
			m[k] += ",more"
		case 2:
			setReader(t, db, k, v, Sync)
		default:
			require.NoError(t, db.Set([]byte(k), []byte(v), []*WriteOptions{Sync, Async}[i%2]))
		}
	}
	require.NoError(t, b.Commit(Sync))
	again := db.NewBatch()
	require.NoError(t, b.Replay(again), "the batch is as it was")
	require.Equal(t, b.Size(), again.Size())
	check := func() {
		t.Helper()
		requireStreamed(t, db, m)
		requireBlobs(t, db)
	}
	check()
	require.NoError(t, db.Close())
	for range 2 { // recovery copies what only the log refers to
		read, err := Open("db", &Options{harness: harness.Harness{FS: fsys}, ReadOnly: true, Clock: clock.Time})
		require.NoError(t, err)
		requireStreamed(t, read, m)
		require.NoError(t, read.Close())
		require.NoError(t, verifyFS(t.Context(), fsys, "db", io.Discard))
		db, err = Open("db", o)
		require.NoError(t, err)
		check()
		m["key007"] = strings.Repeat("as it was written last ", 10)
		require.NoError(t, db.Set([]byte("key007"), []byte(m["key007"]), Sync))
		check()
		require.NoError(t, db.Close())
	}
	db, err = Open("db", o)
	require.NoError(t, err)
	for range 3 {
		for i := range 20 {
			k := fmt.Sprintf("key%03d", i)
			m[k] = strings.Repeat("z", 50+i*10)
			require.NoError(t, db.Set([]byte(k), []byte(m[k]), NoSync))
		}
	}
	check()
	require.NoError(t, db.Flush(t.Context()))
	check()
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	check()
	clock.Advance(2 * time.Hour)
	check()
	require.NoError(t, db.Close())

	_, err = Open("db", &Options{harness: harness.Harness{FS: fsys}, SeparateFrom: -1, SeparateAtCommit: true})
	require.ErrorIs(t, err, ErrInvalidOptions)
}

// A log ends at the first handle whose value is not whole, unless it is proved that it was synced, as far as the
// recovery mode takes a torn record for the trace of a crash.
func TestALogEndsWhereAValueIsNotWhole(t *testing.T) {
	t.Parallel()
	const size = 1000
	at := func(n int) int { return n * (size + 20) } // inside of the value of write n
	cut := func(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:at(n)] } }
	for _, c := range []struct {
		what    string
		damage  func([]byte) []byte
		mode    RecoveryMode
		left    string // keys; "": refused
		refused string
	}{
		{"whole", flipNothing, Absolute, "", "not closed"},
		{"whole", flipNothing, PointInTime, "abc", ""},
		{"the last is cut off", cut(3), PointInTime, "ab", ""},
		{"the last is cut off", cut(3), TolerateTornTail, "ab", ""},
		{"the last is cut off", cut(3), SkipCorrupt, "ab", ""},
		{"the second is flipped", flip(at(2)), PointInTime, "a", ""},
		{"the second is flipped", flip(at(2)), TolerateTornTail, "", ".blob"},
		{"the second is flipped", flip(at(2)), SkipCorrupt, "ac", ""},
		{"the first, which was synced, is flipped", flip(at(1)), PointInTime, "", ".blob"},
		{"the header is flipped", flip(3), PointInTime, "", ".blob"},
		{"the file is empty", func([]byte) []byte { return nil }, PointInTime, "", ".blob"},
	} {
		t.Run(fmt.Sprint(c.what, " ", c.mode), func(t *testing.T) {
			dir := t.TempDir()
			o := &Options{SeparateFrom: 100, SeparateAtCommit: true}
			db, err := Open(dir, o)
			require.NoError(t, err)
			for i, k := range []string{"a", "b", "c"} {
				v := strings.Repeat(k, size)
				require.NoError(t, db.Set([]byte(k), []byte(v), []*WriteOptions{Sync, NoSync}[min(i, 1)]))
			}
			db.abandonLikeACrash(t)
			names := blobsOnDisk(t, vfs.OS, dir)
			require.Len(t, names, 1)
			rewrite(t, filepath.Join(dir, names[0]), c.damage)
			o.RecoveryMode = c.mode
			dropped := 0
			o.Events.RecoveryDropped = func(DroppedInfo) { dropped++ }
			want := storetest.Model{}
			for k := range strings.SplitSeq(c.left, "") {
				want[k] = strings.Repeat(k, size)
			}
			if c.mode == PointInTime && c.refused == "" { // a view is what that recovers
				view, err := OpenReadOnly(dir, &Options{})
				require.NoError(t, err)
				for range 2 {
					requireContents(t, want, view)
					require.NoError(t, view.Refresh(t.Context()))
				}
				require.NoError(t, view.Close())
			}
			db, err = Open(dir, o)
			if c.refused != "" {
				require.ErrorIs(t, err, ErrCorruption)
				require.ErrorContains(t, err, c.refused)
				return
			}
			require.NoError(t, err)
			requireContents(t, want, db)
			require.Equal(t, c.left != "abc", dropped > 0)
			requireBlobs(t, db)
			require.NoError(t, db.Close())
		})
	}
}

func flipNothing(b []byte) []byte { return b }

// A view reads values that were set apart by their commits as they come.
func TestFollowersOfLogsWithHandles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := Open(dir, &Options{SeparateFrom: 100, SeparateAtCommit: true, MemtableSize: 64 << 10})
	require.NoError(t, err)
	view, err := OpenReadOnly(dir, nil)
	require.NoError(t, err)
	m := storetest.Model{}
	for i := range 300 {
		k := fmt.Sprintf("key%03d", i%20)
		m[k] = strings.Repeat(fmt.Sprint(i, " "), 1+i*3)
		require.NoError(t, db.Set([]byte(k), []byte(m[k]), NoSync))
		if i%20 == 19 {
			require.NoError(t, view.Refresh(t.Context()))
			requireStreamed(t, view, m)
		}
	}
	require.NoError(t, db.Checkpoint(t.Context(), filepath.Join(dir, "copy")))
	copied, err := Open(filepath.Join(dir, "copy"), nil)
	require.NoError(t, err)
	requireStreamed(t, copied, m)
	require.NoError(t, copied.Close())
	require.NoError(t, view.Close())
	require.NoError(t, db.Close())
}

// Many commit, read and flush at once.
func TestSeparateAtCommitBesideOthers(t *testing.T) {
	t.Parallel()
	db, err := Open("db", &Options{harness: harness.Harness{FS: vfs.NewMem()}, SeparateFrom: 100,
		SeparateAtCommit: true,
		MemtableSize:     64 << 10})
	require.NoError(t, err)
	besideEachOther(t, 6, func(w int) error {
		rng := rand.New(rand.NewPCG(uint64(w), 3))
		k := fmt.Appendf(nil, "key%d", w)
		for i := range 150 {
			v := randomBytes(rng, rng.IntN(20_000))
			err := db.Set(k, v, []*WriteOptions{Sync, NoSync, Async}[i%3])
			var got []byte
			if err == nil {
				got, err = db.Get(k)
			}
			if err == nil && !bytes.Equal(v, got) {
				err = fmt.Errorf("writer %d reads %d bytes for its %d", w, len(got), len(v))
			}
			if err == nil && i%40 == 0 {
				err = db.Flush(t.Context())
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	requireBlobs(t, db)
	require.NoError(t, db.Close())
}

// A file that cannot be written, or not be synced, costs nothing that was acknowledged: the store goes on with
// another log, and the values that are in memory by their handles alone are copied.
func TestAFaultOfALogsBlobFile(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"create", "write", "sync", "syncdir"} {
		for nth := range 4 {
			f := &vfstest.FaultFS{FS: vfs.NewMem()}
			o := &Options{harness: harness.Harness{FS: f, Backoff: quickBackoff}, SeparateFrom: 100,
				SeparateAtCommit: true}
			db, err := Open("db", o)
			require.NoError(t, err)
			n := 0
			f.Set(func(c vfstest.Call) (int, error) {
				if c.Op != op {
					return 0, nil
				}
				if n++; n == nth+1 {
					return c.Bytes / 2, errDisk
				}
				return 0, nil
			})
			want, maybe := storetest.Model{}, storetest.Model{}
			for i := range 8 {
				k := fmt.Sprintf("key%03d", i)
				v := strings.Repeat(k, 100)
				if err := db.Set([]byte(k), []byte(v), Sync); err == nil {
					want[k] = v
				} else {
					require.ErrorIs(t, err, errDisk)
					maybe[k] = v
					db.untilResumed()
				}
			}
			if db.Flush(t.Context()) != nil {
				db.untilResumed()
				require.NoError(t, db.Flush(t.Context()))
			}
			f.Set(nil)
			for range 2 {
				for k, v := range want {
					got, err := db.Get([]byte(k))
					require.NoError(t, err, "%s, call %d of %s", k, nth, op)
					require.Equal(t, v, string(got))
				}
				for k := range maybe {
					_, err := db.Get([]byte(k))
					require.ErrorIs(t, err, ErrNotFound)
				}
				requireBlobs(t, db)
				require.NoError(t, db.Close())
				db, err = Open("db", o)
				require.NoError(t, err)
			}
			require.NoError(t, db.Close())
		}
	}
}

// besideEachOther calls do in n goroutines, and requires that none fails.
func besideEachOther(t *testing.T, n int, do func(worker int) error) {
	t.Helper()
	var all sync.WaitGroup
	errs := make([]error, n)
	for worker := range n {
		all.Go(func() { errs[worker] = do(worker) })
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
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
	db.settle() // the flush is counted
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

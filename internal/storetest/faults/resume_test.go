package faults

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv"
)

// A log that failed is never written or synced again, and what the failed commit
// left in it does not come back, although all its bytes are there.
func TestAFailedCommitDoesNotComeBack(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"write", "sync"} {
		f := &vfstest.FaultFS{FS: vfs.NewMem()}
		o := stores.With(harness.Harness{FS: f, Backoff: storetest.Quick}, &kv.Options{})
		db, err := kv.Open("db", o)
		require.NoError(t, err)
		require.NoError(t, db.Set([]byte("a"), []byte("1"), kv.Sync))
		require.NoError(t, db.Set([]byte("b"), []byte("in memory alone"), kv.Async))
		broken := storetest.NewestFile(t, f, "db", manifest.FileWAL)
		storetest.FailOnce(f, op)
		err = db.Set([]byte("c"), []byte("failed"), kv.Sync)
		require.ErrorIs(t, err, storetest.ErrDisk, op)
		require.ErrorIs(t, err, kv.ErrReadOnly, op)
		require.ErrorContains(t, err, "since writing the log failed")
		want := storetest.Model{"a": "1", "b": "in memory alone"}
		storetest.RequireContents(t, want, db)
		stores.UntilResumed(db)
		require.NotEqual(t, broken, storetest.NewestFile(t, f, "db", manifest.FileWAL))
		harness.Settle(db)
		_, err = f.Stat(broken)
		require.ErrorIs(t, err, fs.ErrNotExist, "the broken log is gone")
		require.NoError(t, db.Set([]byte("d"), []byte("2"), kv.Sync))
		want["d"] = "2"
		stores.Crash(t, db)
		db, err = kv.Open("db", stores.With(harness.Harness{FS: f}, &kv.Options{}))
		require.NoError(t, err)
		storetest.RequireContents(t, want, db)
		require.NoError(t, db.Close())
	}
}

// While a store has failed, writers get the error at once and readers answers.
func TestWritersAreNotKeptWaitingByAFailure(t *testing.T) {
	f := &vfstest.FaultFS{FS: vfs.NewMem()}
	db, err := kv.Open("db", stores.With(harness.Harness{FS: f, Backoff: storetest.Never}, &kv.Options{}))
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("a"), []byte("1"), kv.Sync))
	f.Set(func(c vfstest.Call) (int, error) {
		if c.Changes {
			return 0, storetest.ErrDisk
		}
		return 0, nil
	})
	require.ErrorIs(t, db.Set([]byte("b"), nil, kv.Sync), storetest.ErrDisk)
	for range 100 {
		require.ErrorIs(t, db.Set([]byte("b"), nil, kv.Async), kv.ErrReadOnly)
	}
	storetest.RequireContents(t, storetest.Model{"a": "1"}, db)
	require.Zero(t, db.Metrics().ResumeAttempts)
	err = db.Close()
	require.ErrorIs(t, err, storetest.ErrDisk, "Close cannot write either, and says so")
	f.Set(nil)
	db, err = kv.Open("db", stores.With(harness.Harness{FS: f}, &kv.Options{}))
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

// Close makes a last attempt to save what is in memory alone.
func TestCloseResumesAStoreIfItCan(t *testing.T) {
	for _, how := range []string{"failed before", "fails in Close"} {
		f := &vfstest.FaultFS{FS: vfs.NewMem()}
		db, err := kv.Open("db", stores.With(harness.Harness{FS: f, Backoff: storetest.Never}, &kv.Options{}))
		require.NoError(t, err)
		require.NoError(t, db.Set([]byte("a"), []byte("1"), kv.Async))
		storetest.FailOnce(f, "sync")
		if how == "failed before" {
			require.ErrorIs(t, db.Set([]byte("b"), nil, kv.Sync), storetest.ErrDisk)
		}
		require.NoError(t, db.Close(), how)
		db, err = kv.Open("db", stores.With(harness.Harness{FS: f}, &kv.Options{RecoveryMode: kv.Absolute}))
		require.NoError(t, err)
		storetest.RequireContents(t, storetest.Model{"a": "1"}, db)
		require.NoError(t, db.Close())
	}
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
	storetest.WithoutLeaks(func() {
		o := stores.RandomOptions(rand.New(rand.NewPCG(6, 6)))
		harness.Of(o).FS = f
		db, err := kv.Open("db", o)
		require.NoError(t, err)
		var writers sync.WaitGroup
		for w := range 4 {
			writers.Go(func() {
				for i := range 150 {
					k := fmt.Appendf(nil, "%d/%03d", w, i)
					if err := db.Set(k, []byte(strings.Repeat(string(k), 50)),
						[]*kv.WriteOptions{kv.Sync, kv.NoSync, kv.Async}[i%3]); err != nil {
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
		storetest.RequireContents(t, want, db)
		require.NoError(t, db.Close())
	})
}

// A store that fails again while it tells that it has resumed resumes again.
func TestAStoreThatFailsWhileItResumesResumesAgain(t *testing.T) {
	f := &vfstest.FaultFS{FS: vfs.NewMem()}
	o := stores.With(harness.Harness{FS: f, Backoff: storetest.Quick}, &kv.Options{})
	var db *kv.DB
	resumes := 0
	o.Events.Resumed = func(kv.ResumeInfo) {
		if resumes++; resumes == 1 {
			storetest.FailOnce(f, "sync")
			require.ErrorIs(t, db.Set([]byte("b"), nil, kv.Sync), storetest.ErrDisk)
		}
	}
	db, err := kv.Open("db", o)
	require.NoError(t, err)
	storetest.FailOnce(f, "sync")
	require.ErrorIs(t, db.Set([]byte("a"), nil, kv.Sync), storetest.ErrDisk)
	harness.Resumed(db)
	require.Empty(t, db.Metrics().Failure, "nothing is left to resume it")
	require.Equal(t, 2, resumes)
	require.NoError(t, db.Set([]byte("c"), []byte("3"), kv.Sync))
	require.NoError(t, db.Close())
}

// A manifest that fails as it is to say that there will be operands, or later, is
// replaced by one that knows the merger.
func TestAHealedStoreKnowsItsMerger(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{false, true} { // the first operand
		for _, op := range []string{"write", "sync"} {
			f := &vfstest.FaultFS{FS: vfs.NewMem()}
			o := stores.With(harness.Harness{FS: f, Backoff: storetest.Quick}, &kv.Options{Merger: kv.Append(",")})
			db, err := kv.Open("db", o)
			require.NoError(t, err)
			require.NoError(t, db.Set([]byte("k"), []byte("1"), kv.Sync))
			if before {
				require.NoError(t, db.Merge([]byte("k"), []byte("2"), kv.Sync))
			}
			storetest.FailOnce(f, op)
			require.ErrorIs(t, db.Merge([]byte("k"), []byte("failed"), kv.Sync), kv.ErrReadOnly)
			stores.UntilResumed(db)
			require.NoError(t, db.Merge([]byte("k"), []byte("3"), kv.Sync))
			want := storetest.Model{"k": "1,3"}
			if before {
				want["k"] = "1,2,3"
			}
			stores.Crash(t, db)
			_, err = kv.Open("db", stores.With(harness.Harness{FS: f}, &kv.Options{Merger: kv.Int64Add}))
			require.ErrorIs(t, err, kv.ErrInvalidOptions)
			db, err = kv.Open("db", stores.With(harness.Harness{FS: f}, &kv.Options{}))
			require.NoError(t, err)
			storetest.RequireContents(t, want, db)
			require.NoError(t, db.Close())
		}
	}
}

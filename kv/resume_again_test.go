package kv

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	sift "github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// A store that fails again while it tells that it has resumed resumes again.
func TestAStoreThatFailsWhileItResumesResumesAgain(t *testing.T) {
	f := &vfstest.FaultFS{FS: sift.NewMem()}
	o := &Options{harness: harness.Harness{FS: f, Backoff: quickBackoff}}
	var db *DB
	resumes := 0
	o.Events.Resumed = func(ResumeInfo) {
		if resumes++; resumes == 1 {
			failOnce(f, "sync")
			require.ErrorIs(t, db.Set([]byte("b"), nil, Sync), errDisk)
		}
	}
	db, err := Open("db", o)
	require.NoError(t, err)
	failOnce(f, "sync")
	require.ErrorIs(t, db.Set([]byte("a"), nil, Sync), errDisk)
	db.mu.Lock()
	for db.resumer.running {
		db.progress.Wait()
	}
	failure := db.failure
	db.mu.Unlock()
	require.NoError(t, failure, "nobody is left to resume it")
	require.Equal(t, 2, resumes)
	require.NoError(t, db.Set([]byte("c"), []byte("3"), Sync))
	require.NoError(t, db.Close())
}

// A manifest that fails as it is to say that there will be operands, or later, is
// replaced by one that knows the merger.
func TestAHealedStoreKnowsItsMerger(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{false, true} { // the first operand
		for _, op := range []string{"write", "sync"} {
			f := &vfstest.FaultFS{FS: sift.NewMem()}
			o := &Options{harness: harness.Harness{FS: f, Backoff: quickBackoff}, Merger: Append(",")}
			db, err := Open("db", o)
			require.NoError(t, err)
			require.NoError(t, db.Set([]byte("k"), []byte("1"), Sync))
			if before {
				require.NoError(t, db.Merge([]byte("k"), []byte("2"), Sync))
			}
			failOnce(f, op)
			require.ErrorIs(t, db.Merge([]byte("k"), []byte("failed"), Sync), ErrReadOnly)
			db.untilResumed()
			require.NoError(t, db.Merge([]byte("k"), []byte("3"), Sync))
			want := storetest.Model{"k": "1,3"}
			if before {
				want["k"] = "1,2,3"
			}
			db.abandonLikeACrash(t)
			_, err = Open("db", &Options{harness: harness.Harness{FS: f}, Merger: Int64Add})
			require.ErrorIs(t, err, ErrInvalidOptions)
			db, err = Open("db", &Options{harness: harness.Harness{FS: f}})
			require.NoError(t, err)
			requireContents(t, want, db)
			require.NoError(t, db.Close())
		}
	}
}

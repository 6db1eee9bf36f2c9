package kv

import (
	"testing"

	sift "github.com/siftkv/siftkv/internal/vfs"
	"github.com/stretchr/testify/require"
)

// A store that fails again while it tells that it has resumed resumes again.
func TestAStoreThatFailsWhileItResumesResumesAgain(t *testing.T) {
	f := &faultFS{fs: sift.NewMem()}
	o := &Options{fs: f, backoff: quickBackoff}
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

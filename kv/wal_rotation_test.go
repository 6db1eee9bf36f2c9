package kv

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/offheap"
	"github.com/siftkv/siftkv/internal/survey"
	sift "github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// A log that was made ahead, and that a disk in trouble did not let go, stays behind, between
// the log that was in use and the next. It counts for nothing: no log has lost anything.
func TestALogThatWasMadeAheadInVainCountsForNothing(t *testing.T) {
	t.Parallel()
	for mode := range numRecoveryModes {
		if mode == Absolute {
			continue // nothing is recovered after a crash
		}
		for _, level := range []*WriteOptions{Sync, NoSync} {
			f := &vfstest.FaultFS{FS: sift.NewMem()}
			db := openDir(t, "db", &Options{harness: harness.Harness{FS: f}, CacheSize: -1})
			stopFlushes(db, true) // the logs stay
			require.NoError(t, db.Set([]byte("a"), []byte("1"), level))
			f.Set(func(c vfstest.Call) (int, error) {
				if c.Op == "syncdir" || c.Op == "remove" {
					return 0, errDisk
				}
				return 0, nil
			})
			db.logs.Prepare()
			db.logs.Wait(false)
			f.Set(nil)
			require.Nil(t, db.logs.Take().Log)
			require.NoError(t, exclusive(db, func() error {
				db.mu.Lock()
				defer db.mu.Unlock()
				return db.rotateTo(0, nil)
			}))
			require.NoError(t, db.Set([]byte("b"), []byte("2"), level))
			stopFlushes(db, false)
			require.NoError(t, db.abandon())

			found, err := survey.Take(t.Context(), "db", survey.Options{FS: f})
			require.NoError(t, err)
			require.Empty(t, found.Damage)
			again, err := Open("db", &Options{harness: harness.Harness{FS: f}, RecoveryMode: mode, CacheSize: -1})
			require.NoError(t, err, "%v", mode)
			for _, key := range []string{"a", "b"} {
				ok, err := again.Has([]byte(key))
				require.NoError(t, err)
				require.True(t, ok, "%v: %s", mode, key)
			}
			require.Zero(t, again.Metrics().RecoveryDrops)
			require.NoError(t, again.Close())
		}
	}
}

// A store that is closed removes the log that it made ahead. If that fails, or a power cut
// takes the removal back, the store was closed cleanly all the same.
func TestALogThatWasMadeAheadDoesNotMakeACloseUnclean(t *testing.T) {
	f := &vfstest.FaultFS{FS: sift.NewMem()}
	db := openDir(t, "db", &Options{harness: harness.Harness{FS: f}, CacheSize: -1})
	require.NoError(t, db.Set([]byte("a"), []byte("1"), Sync))
	db.logs.Prepare()
	db.logs.Wait(false)
	failOnce(f, "remove")
	require.NoError(t, db.Close())
	again, err := Open("db", &Options{harness: harness.Harness{FS: f}, RecoveryMode: Absolute, CacheSize: -1})
	require.NoError(t, err)
	ok, err := again.Has([]byte("a"))
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, again.Close())
}

// A memtable that was made ahead, and that no rotation takes, gives its memory back at once, not when the collector
// happens to run.
func TestAMemtableThatWasMadeAheadInVainGivesItsMemoryBack(t *testing.T) {
	before := offheap.Used()
	db := openDir(t, "db", &Options{InMemory: true, CacheSize: -1, MemtableSize: 1 << 20})
	require.NoError(t, db.Set([]byte("a"), []byte("1"), nil))
	var made []*memtable.Memtable // counted here: a flush gives memory back meanwhile, so offheap.Used does not tell
	memtableOf := db.logs.Memtable
	db.logs.Memtable = func(log uint64) *memtable.Memtable {
		m := memtableOf(log)
		made = append(made, m)
		return m
	}
	prepare := func() {
		db.logs.Prepare()
		db.logs.Wait(false)
	}
	prepare()
	require.NoError(t, db.Set([]byte("large"), make([]byte, 3<<20), nil)) // takes the log alone
	require.NoError(t, db.Flush(t.Context()))
	prepare()
	require.GreaterOrEqual(t, len(made), 2)
	require.NotContains(t, made, (*memtable.Memtable)(nil))
	require.NoError(t, db.Close())
	require.LessOrEqual(t, offheap.Used(), before)
}

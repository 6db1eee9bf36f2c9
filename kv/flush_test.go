package kv

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/job"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// As many ranges of a flush are written at once as there are threads for them, its own included:
// each has begun a file before any goes on. Together they are one run.
func TestRangesOfAFlushAreWrittenAtOnce(t *testing.T) {
	processors(t, 8)
	for threads := 1; threads <= 3; threads++ {
		m := newMeeting()
		o := &Options{harness: harness.Harness{FS: &vfstest.GateFS{FS: vfs.NewMem(), Table: m.come},
			RangeSize: 10 << 10}, MaxConcurrentCompactions: threads,
			L0CompactionThreshold: 50, BlockSize: 512}
		db := openDir(t, "db", o)
		want := storetest.Model{}
		m.of(0, threads+1)
		overlapping(t, db, want, 1)
		level0 := db.Metrics().Levels[0]
		require.Equal(t, 1, level0.Runs)
		require.Greater(t, level0.Files, threads)
		requireContents(t, want, db)
		require.NoError(t, db.Close())
		db = openDir(t, "db", o)
		require.Equal(t, level0.Files, db.Metrics().Levels[0].Files)
		require.Equal(t, 1, db.Metrics().Levels[0].Runs)
		requireContents(t, want, db)
		require.NoError(t, db.Close())
	}
}

// A memtable is cut only if it is large, and threads are idle.
func TestAFlushIsCutWhereThreadsAreIdle(t *testing.T) {
	for _, c := range []struct {
		name                     string
		processors, busy, mib, n int
	}{
		{"idle", 2, 0, 17, 2}, {"one processor", 1, 0, 17, 1}, {"a compaction runs", 2, 1, 17, 1},
		{"small", 2, 0, 15, 1}, {"more processors", 8, 0, 30, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			processors(t, c.processors)
			flushed := FlushInfo{}
			db := openMem(t, &Options{MemtableSize: 40 << 20, MaxConcurrentCompactions: max(c.processors/4, 1),
				Events: Events{Flushed: func(i FlushInfo) { flushed = i }}})
			value := make([]byte, 32<<10)
			for i := range c.mib * 32 {
				require.NoError(t, db.Set(fmt.Appendf(nil, "key%06d", i*7919%1009), value, Async))
			}
			busy := func(n int) {
				db.mu.Lock()
				db.compactions.Background += n
				db.mu.Unlock()
			}
			busy(c.busy)
			require.NoError(t, db.Flush(t.Context()))
			db.waitForBackground()
			busy(-c.busy)
			require.Equal(t, c.n, flushed.Files)
			level0 := db.Metrics().Levels[0]
			require.Equal(t, []int{c.n, 1}, []int{level0.Files, level0.Runs})
			for _, table := range db.installed().Level0() {
				require.InEpsilon(t, int(level0.Entries)/c.n, int(table.Entries), 0.25)
			}
			require.NoError(t, db.Close())
		})
	}
}

// What counts level 0 counts flushes, in however many files: compactions, slow-downs, lookups.
func TestLevel0CountsRunsAndNotFiles(t *testing.T) {
	t.Parallel()
	for kind := range numCompactions {
		db := openMem(t, &Options{Compaction: kind, L0CompactionThreshold: 5, L0SlowdownThreshold: 6, BlockSize: 512,
			harness: harness.Harness{RangeSize: 8 << 10}, MaxConcurrentCompactions: 2})
		want := storetest.Model{}
		overlapping(t, db, want, 4)
		db.waitForBackground()
		m := db.Metrics()
		require.Zero(t, m.Compactions+m.Moves)
		require.Zero(t, m.Slowdowns)
		require.Equal(t, 4, m.Levels[0].Runs)
		require.Greater(t, m.Levels[0].Files, 16)
		require.Len(t, m.Runs, 4)
		e, err := db.Explain([]byte("key000007"))
		require.NoError(t, err)
		files := 0
		for _, s := range e.Steps {
			if s.Level == 0 {
				files++
			}
		}
		require.Equal(t, 1, files, "the newest run has the key")
		requireContents(t, want, db)
		overlapping(t, db, want, 2)
		db.waitForBackground()
		require.NotZero(t, db.Metrics().Compactions)
		require.Less(t, db.Metrics().Levels[0].Runs, 5)
		requireContents(t, want, db)
		require.NoError(t, db.Close())
	}
}

// Whichever call of whichever range of a flush fails: all ranges end, the store resumes, and
// nothing that they wrote is left.
func TestAFailureInOneRangeOfAFlushEndsAll(t *testing.T) {
	rangesThatFail(t, 1, func(db *DB, want storetest.Model, failing func(func() error)) {
		before := db.Metrics().Levels[0].Files
		for i := range 500 {
			k := fmt.Sprintf("key%06d", i*7)
			want[k] = fmt.Sprint("again", i, string(make([]byte, 100)))
			require.NoError(t, db.Set([]byte(k), []byte(want[k]), Async))
		}
		db.mu.Lock()
		mems := []*memTable{db.mem}
		j := job.Flush{Version: db.current, Memtables: mems, Limit: db.seq(), Values: db.values.Flush(mems)}
		db.mu.Unlock()
		failing(func() error {
			_, err := j.Do(db.jobEnv(db.operands))
			return err
		})
		require.NoError(t, db.Flush(t.Context()))
		require.Greater(t, db.Metrics().Levels[0].Files, before+1)
	})
}

// Range tombstones over several ranges are cut with them, and snapshots see what they saw.
func TestRangeTombstonesAcrossTheRangesOfAFlush(t *testing.T) {
	o := &Options{harness: harness.Harness{FS: vfs.NewMem(), RangeSize: 8 << 10}, L0CompactionThreshold: 50,
		BlockSize: 512, MaxConcurrentCompactions: 2}
	db := openDir(t, "db", o)
	want := storetest.Model{}
	key := func(i int) []byte { return fmt.Appendf(nil, "key%06d", i*7) }
	remove := func(lo, hi int) {
		require.NoError(t, db.DeleteRange(key(lo), key(hi), NoSync))
		for i := lo; i < hi; i++ {
			delete(want, string(key(i)))
		}
	}
	overlapping(t, db, want, 1)
	for i := range 500 {
		want[string(key(i))] = fmt.Sprint("new", i, string(make([]byte, 100)))
		require.NoError(t, db.Set(key(i), []byte(want[string(key(i))]), NoSync))
	}
	remove(20, 60)
	s, past := db.NewSnapshot(), maps.Clone(want)
	remove(40, 460)
	for i := 100; i < 500; i += 10 {
		want[string(key(i))] = "last"
		require.NoError(t, db.Set(key(i), []byte("last"), NoSync))
	}
	remove(450, 490)
	require.NoError(t, db.Flush(t.Context()))
	v := db.installed()
	require.Len(t, v.Levels[0].Runs, 2)
	with := v.Levels[0].Runs[0].WithTombstones
	require.Greater(t, with.Len(), 2)
	for i := 1; i < with.Len(); i++ {
		require.True(t, with.At(i-1).Before(with.At(i).Smallest))
	}
	requireContents(t, want, db)
	requireContents(t, past, s)
	require.NoError(t, s.Close())
	require.NoError(t, db.Close())
	db = openDir(t, "db", o)
	requireContents(t, want, db)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	requireContents(t, want, db)
	require.Zero(t, version.SizeOf(db.installed().Level0()))
	require.NoError(t, db.Close())
}

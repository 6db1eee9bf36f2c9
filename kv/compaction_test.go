package kv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// A meeting holds whoever comes until so many are there at once; from then on nobody waits.
type meeting struct {
	mu    sync.Mutex
	cond  sync.Cond
	open  bool // who comes is held
	there int
	want  int
}

func newMeeting() *meeting {
	m := &meeting{}
	m.cond.L = &m.mu
	return m
}

// of lets some pass, and has the next ones wait until there are so many.
func (m *meeting) of(pass, want int) {
	m.mu.Lock()
	m.open, m.there, m.want = true, -pass, want
	m.mu.Unlock()
}

func (m *meeting) come() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.there++; m.there <= 0 {
		return
	}
	if m.there >= m.want {
		m.open = false
		m.cond.Broadcast()
	}
	for m.open {
		m.cond.Wait()
	}
}

// processors lets so many goroutines run at once during a test.
func processors(t *testing.T, n int) {
	scale.Alone(t)
	before := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// overlapping flushes so many files that all span the same keys.
func overlapping(t *testing.T, db *DB, want storetest.Model, files int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, uint64(files)))
	for file := range files {
		for i := range 500 {
			k := fmt.Sprintf("key%06d", i*7)
			want[k] = fmt.Sprint(file, string(randomBytes(rng, 100)))
			require.NoError(t, db.Set([]byte(k), []byte(want[k]), Async))
		}
		require.NoError(t, db.Flush(t.Context()))
	}
}

// As many ranges of one compaction are merged at once as there are threads for them: each has
// begun a file before any goes on.
func TestRangesOfACompactionAreMergedAtOnce(t *testing.T) {
	processors(t, 8)
	for threads := 2; threads <= 5; threads++ {
		m := newMeeting()
		flushes := 0
		flushed := func(FlushInfo) {
			if flushes++; flushes == 4 {
				m.of(0, threads)
			}
		}
		db := openDir(t, "db", &Options{harness: harness.Harness{FS: &vfstest.GateFS{FS: vfs.NewMem(), Table: m.come},
			RangeSize: 10 << 10},
			MaxConcurrentCompactions: threads,
			L0CompactionThreshold:    4, BlockSize: 512, SeparateFrom: -1,
			Events: Events{Flushed: flushed}})
		want := storetest.Model{}
		overlapping(t, db, want, 4)
		db.waitForBackground()
		require.Zero(t, db.Metrics().Levels[0].Files)
		require.EqualValues(t, 1, db.Metrics().Compactions)
		requireContents(t, want, db)
		require.NoError(t, db.Close())
	}
}

// Compactions that several ask for, of keys that have nothing to do with each other, all run at
// the same time, whatever the number of threads in the background.
func TestManyDisjointCompactionsRunAtOnce(t *testing.T) {
	processors(t, 8)
	m := newMeeting()
	db := openDir(t, "db", &Options{harness: harness.Harness{FS: &vfstest.GateFS{FS: vfs.NewMem(), Table: m.come},
		RangeSize: 10 << 10}, MaxConcurrentCompactions: 1,
		L0CompactionThreshold: 50, BlockSize: 512})
	want := storetest.Model{}
	spans := []string{"a", "h", "p", "w"}
	for round := range 2 {
		for _, s := range spans {
			for i := range 200 {
				k := fmt.Sprintf("%s%04d", s, i)
				want[k] = fmt.Sprint(round, k)
				require.NoError(t, db.Set([]byte(k), []byte(want[k]), Async))
			}
			require.NoError(t, db.Flush(t.Context()))
		}
	}
	m.of(0, len(spans))
	done := make(chan error)
	for _, s := range spans {
		go func() { done <- db.Compact(t.Context(), []byte(s), []byte(s+"9999")) }()
	}
	for range spans {
		require.NoError(t, <-done)
	}
	require.Zero(t, db.Metrics().Levels[0].Files)
	requireContents(t, want, db)
	require.NoError(t, db.Close())
}

// mergeOf returns a job that merges tables of level 0 into a level. The caller holds
// d.mu.
func (d *DB) mergeOf(tables []*version.Table, output int) *compaction.Job {
	j := &compaction.Job{Kind: compaction.Merge, Inputs: [NumLevels][]*version.Table{tables}, Output: output}
	return d.compactionInput(d.current).Prepare(j)
}

// While one part of level 0 goes down, another that shares no keys with it does too.
func TestDisjointPartsOfLevel0GoDownAtOnce(t *testing.T) {
	db := openMem(t, &Options{MaxConcurrentCompactions: 2, L0CompactionThreshold: 3, L0SlowdownThreshold: 20})
	want := storetest.Model{}
	flush := func(keys ...string) {
		for _, k := range keys {
			want[k] += "+"
			set(t, db, k, want[k])
		}
		require.NoError(t, db.Flush(t.Context()))
	}
	flush("a", "c")
	flush("b", "d")
	db.mu.Lock()
	c := db.begin(db.mergeOf(db.current.Level0(), lastLevel)) // it takes long
	db.mu.Unlock()
	files := func() int { return db.Metrics().Levels[0].Files }
	flush("x", "z")
	storetest.Until(func() bool { return db.Metrics().Moves == 1 }) // it shares no keys with the level below
	require.Equal(t, 2, files())
	flush("x", "y")
	flush("y", "z")
	require.Equal(t, 4, files(), "a few files wait")
	flush("c", "d")
	require.Equal(t, 5, files(), "and so does what is newer than what goes down")
	flush("w", "x")
	storetest.Until(func() bool { return files() == 3 })
	require.NoError(t, db.compact(t.Context(), c))
	db.reschedule(func() { db.end(c) })
	db.waitForBackground()
	requireContents(t, want, db)
	require.NoError(t, db.Close())
}

// rangesThatFail calls test with a store of some files that all span the same keys, for each kind of call and
// each of the first of its kind that may fail. What test gives to failing runs while that call fails, and those
// of its kind that follow: it has to fail with their error, and to leave nothing behind.
func rangesThatFail(t *testing.T, files int, test func(db *DB, want storetest.Model, failing func(run func() error))) {
	processors(t, 4)
	errTest := errors.New("test")
	for _, op := range []string{"create", "write", "sync", "syncdir"} {
		for after := range 4 {
			fault := &vfstest.FaultFS{FS: vfs.NewMem()}
			db := openDir(t, "db", &Options{harness: harness.Harness{FS: fault, RangeSize: 10 << 10},
				MaxConcurrentCompactions: 3, L0CompactionThreshold: 50,
				BlockSize: 512})
			want := storetest.Model{}
			overlapping(t, db, want, files)
			test(db, want, func(run func() error) {
				calls := 0
				fault.Set(func(c vfstest.Call) (int, error) {
					if c.Op != op {
						return 0, nil
					}
					if calls++; calls > after || op == "syncdir" {
						return 0, errTest
					}
					return 0, nil
				})
				require.ErrorIs(t, run(), errTest, "%s %d", op, after)
				fault.Set(nil)
				requireOnlyLiveFiles(t, db)
			})
			requireOnlyLiveFiles(t, db)
			requireContents(t, want, db)
			require.NoError(t, db.Close())
		}
	}
}

// Whichever call of whichever range fails: all ranges end, nothing that they wrote is left, and
// the store is as it was.
func TestAFailureInOneRangeEndsAll(t *testing.T) {
	rangesThatFail(t, 4, func(db *DB, _ storetest.Model, failing func(func() error)) {
		before := db.Metrics().Levels
		failing(func() error { return db.Compact(t.Context(), nil, nil) })
		require.Equal(t, before, db.Metrics().Levels)
		require.NoError(t, db.Compact(t.Context(), nil, nil))
	})
}

// Compactions wait and flushes do not, and with level 0 full compactions do not either.
func TestCompactionRate(t *testing.T) {
	t.Parallel()
	o := tieredOptions(Leveled)
	o.CompactionRate = minCompactionRate
	o.L0CompactionThreshold, o.L0SlowdownThreshold, o.L0StopThreshold = 6, 6, 70
	db := openDir(t, "db", o)
	defer func() { require.NoError(t, db.Close()) }()
	pause := func() {
		db.mu.Lock()
		defer db.mu.Unlock()
		db.compactions.Paused = true
	}
	pause()
	want := storetest.Model{}
	rng := rand.New(rand.NewPCG(1, 1))
	fill(t, db, want, rng, 5, 1000)
	require.Zero(t, db.Metrics().CompactionRateTime, "flushes do not wait")
	require.False(t, db.slowsWriters())
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	// The file is one write. However long the test may have taken, no more than the
	// burst was saved up for it, which is a tenth of a second.
	m := db.Metrics()
	owed := time.Duration(m.CompactionWrittenBytes)*time.Second/minCompactionRate - 100*time.Millisecond
	require.Greater(t, owed, 2*time.Millisecond)
	require.GreaterOrEqual(t, m.CompactionRateTime, owed)
	pause() // a compaction that works ends a pause
	fill(t, db, want, rng, 6, 1000)
	require.True(t, db.slowsWriters())
	db.reschedule(func() { db.compactions.Paused = false })
	settleStore(t, db)
	require.False(t, db.slowsWriters())
	requireContents(t, want, db)
}

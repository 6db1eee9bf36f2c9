package kv

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/version"
	sift "github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv/metrics"
	"github.com/siftkv/siftkv/sstable"
)

// quarantineOptions compact as soon as there are two files.
func quarantineOptions() *Options {
	return &Options{
		CacheSize: -1, MemtableSize: 64 << 10, BlockSize: 512, Compression: sstable.NoCompression,
		L0CompactionThreshold: 2, L0SlowdownThreshold: 20, L0StopThreshold: 30, TargetFileSize: 16 << 10,
		BaseLevelSize: 32 << 10,
	}
}

// A compaction that meets a damaged block leaves the file alone, says so, and
// writes go on for as long as one likes; what is not damaged is read.
func TestACompactionThatMeetsDamageGoesAroundIt(t *testing.T) {
	t.Parallel()
	for n := range 2 * int(numCompactions) {
		level, kind := []int{0, lastLevel}[n%2], CompactionStyle(n/2)
		dir := t.TempDir()
		o := quarantineOptions()
		o.L0CompactionThreshold = 20
		db := openDir(t, dir, o)
		want := storetest.Model{}
		rng := rand.New(rand.NewPCG(3, 3))
		write := func(db *DB, k string) {
			want[k] = string(randomBytes(rng, 200))
			require.NoError(t, db.Set([]byte(k), []byte(want[k]), NoSync))
		}
		for i := range 40 {
			write(db, fmt.Sprintf("%03d", i))
		}
		require.NoError(t, db.Flush(t.Context()))
		if level == lastLevel {
			require.NoError(t, db.Compact(t.Context(), nil, nil))
		}
		require.NoError(t, db.Close())
		table := only(t, dir, manifest.FileTable)
		rewrite(t, table, flip(700)) // in the second block

		o = quarantineOptions()
		o.Compaction = kind
		var mu sync.Mutex
		var damage []error
		o.Events.Quarantined = func(err error) {
			mu.Lock()
			defer mu.Unlock()
			damage = append(damage, err)
		}
		o.Events.Failed = func(err error) { t.Error(err) }
		db = openDir(t, dir, o)
		for round := range max(scale.Count(60, 120), 60) { // far more flushes than level 0 may have files
			for range 10 {
				write(db, fmt.Sprintf("%03d", 100+rng.IntN(300)))
			}
			write(db, fmt.Sprintf("%03dx", rng.IntN(40))) // among those of the damaged file
			if round%10 == 5 {
				require.NoError(t, db.DeleteRange([]byte("150"), []byte("160"), NoSync))
				want.DeleteRange([]byte("150"), []byte("160"))
			}
			require.NoError(t, db.Flush(t.Context()))
		}
		db.waitForBackground()
		mu.Lock()
		require.NotEmpty(t, damage)
		requireDamage(t, damage[0], table, -1)
		mu.Unlock()
		m := db.Metrics()
		require.Empty(t, m.Failure)
		require.Equal(t, 1, m.QuarantinedTables)
		require.NotZero(t, m.FailedCompactions)
		require.Less(t, m.Levels[0].Files, 20, "level 0 is kept small")
		requireAllButDamaged(t, db, want, table)
		require.ErrorIs(t, db.Compact(t.Context(), nil, nil), ErrCorruption, "who asks for it is told")
		require.Empty(t, db.Metrics().Failure)
		require.NoError(t, db.Close())
		require.ErrorIs(t, Verify(t.Context(), dir, io.Discard), ErrCorruption)

		o = quarantineOptions()
		o.MaxConcurrentCompactions = 1
		db = openDir(t, dir, o)
		requireAllButDamaged(t, db, want, table)
		require.NoError(t, db.Close())
	}
}

// requireAllButDamaged looks every key up: a few are in the damaged block.
func requireAllButDamaged(t *testing.T, db *DB, want storetest.Model, table string) {
	t.Helper()
	failed := 0
	for k, v := range want {
		got, err := db.Get([]byte(k))
		if err != nil {
			requireDamage(t, err, table, -1)
			failed++
			continue
		}
		require.Equal(t, v, string(got), k)
	}
	require.InDelta(t, 3, failed, 2, "one block is lost")
	ok, err := db.Has([]byte("155x"))
	require.NoError(t, err)
	require.False(t, ok)
}

// A file whose range tombstones cannot be read makes lookups fail within its bounds,
// and nowhere else.
func TestDamagedRangeTombstonesConcernTheirFileAlone(t *testing.T) {
	dir := t.TempDir()
	db := openDir(t, dir, nil)
	set(t, db, "a", "1")
	set(t, db, "m", "2")
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	db.settle() // for the input of the compaction
	below := only(t, dir, manifest.FileTable)
	require.NoError(t, db.DeleteRange([]byte("k"), []byte("p"), NoSync))
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Close())
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	require.Len(t, tables, 2)
	damaged := tables[0]
	if damaged == below {
		damaged = tables[1]
	}
	rewrite(t, damaged, flip(3))
	db = openDir(t, dir, nil)
	v, err := db.Get([]byte("a"))
	require.NoError(t, err)
	require.Equal(t, "1", string(v))
	_, err = db.Get([]byte("m"))
	requireDamage(t, err, damaged, -1)
	_, err = db.Get([]byte("z"))
	require.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, db.Close())
}

// longQuarantine tries at once what has failed, and leaves a file alone, after several attempts, for longer than a test
// takes.
var longQuarantine = compaction.Backoff{First: time.Millisecond, Max: time.Hour}

// Reads that fail are tried again; if they keep failing, the file is left alone.
func TestACompactionThatCannotReadTriesAgain(t *testing.T) {
	for _, forGood := range []bool{false, true} {
		f := &vfstest.FaultFS{FS: sift.NewMem()}
		o := quarantineOptions()
		o.harness.FS, o.harness.Backoff, o.L0CompactionThreshold = f, longQuarantine, 10
		db, err := Open("db", o)
		require.NoError(t, err)
		want := storetest.Model{}
		fill := func(db *DB, n int) {
			for i := range 20 {
				k := fmt.Sprintf("%d/%02d", n, i)
				want[k] = k
				set(t, db, k, k)
			}
			require.NoError(t, db.Flush(t.Context()))
		}
		fill(db, 0)
		require.NoError(t, db.Close())
		damaged := make(chan error, 10)
		o.L0CompactionThreshold = 2
		o.Events.Quarantined = func(err error) { damaged <- err }
		compacted := make(chan struct{}, 100)
		o.Events.Compacted = func(CompactionInfo) { compacted <- struct{}{} }
		db, err = Open("db", o)
		require.NoError(t, err)
		left := 2
		f.Set(func(c vfstest.Call) (int, error) {
			if c.Op == "open" && (forGood || left > 0) {
				left--
				return 0, errDisk
			}
			return 0, nil
		})
		fill(db, 1)
		if forGood {
			require.ErrorIs(t, <-damaged, errDisk)
			require.NotZero(t, db.Metrics().QuarantinedTables)
		} else {
			<-compacted
			require.Zero(t, db.Metrics().QuarantinedTables)
		}
		require.Empty(t, db.Metrics().Failure)
		f.Set(nil)
		requireContents(t, want, db)
		require.NoError(t, db.Close())
	}
}

// A compaction counts as running until the conclusions from its end are drawn: whoever
// waits for the store finds nothing half done, and no other compaction takes the file
// that this one met damage in.
func TestACompactionRunsUntilItsDamageIsDealtWith(t *testing.T) {
	f := &vfstest.FaultFS{FS: sift.NewMem()}
	o := quarantineOptions()
	o.harness.FS, o.harness.Backoff = f, longQuarantine
	told := make(chan *metrics.Store, 1)
	var db *DB
	o.Events.Quarantined = func(error) { told <- db.Metrics() }
	db, err := Open("db", o)
	require.NoError(t, err)
	set(t, db, "a", "1")
	require.NoError(t, db.Flush(t.Context()))
	f.Set(func(c vfstest.Call) (int, error) {
		if c.Op == "open" {
			return 0, errDisk
		}
		return 0, nil
	})
	set(t, db, "a", "2")
	require.NoError(t, db.Flush(t.Context()))
	m := <-told
	require.Equal(t, 1, m.RunningCompactions)
	require.EqualValues(t, compaction.MaxReadFailures, m.FailedCompactions)
	db.settle()
	require.Equal(t, 2, db.Metrics().QuarantinedTables, "the error names no file")
	f.Set(nil)
	requireContents(t, storetest.Model{"a": "2"}, db)
	require.NoError(t, db.Close())
}

// Intra-level merges keep what snapshots see, and the order of level 0.
func TestMergesWithinLevel0KeepHistory(t *testing.T) {
	o := quarantineOptions()
	o.L0CompactionThreshold = 3
	db := openMem(t, o)
	want := storetest.Model{}
	put := func(k, v string) {
		set(t, db, k, v)
		want[k] = v
	}
	put("bottom", "0")
	put("gone", "0")
	require.NoError(t, db.Flush(t.Context()))
	db.mu.Lock()
	db.current.Level0()[0].Quarantined = true
	db.mu.Unlock()
	rng := rand.New(rand.NewPCG(8, 8))
	type past struct {
		s *Snapshot
		m storetest.Model
	}
	var pasts []past
	for i := range 60 {
		put(strconv.Itoa(rng.IntN(30)), strconv.Itoa(i))
		if i%7 == 0 {
			require.NoError(t, db.Delete([]byte("gone"), NoSync))
			delete(want, "gone")
		}
		if i%11 == 0 {
			require.NoError(t, db.DeleteRange([]byte("1"), []byte("2"), NoSync))
			want.DeleteRange([]byte("1"), []byte("2"))
		}
		require.NoError(t, db.Flush(t.Context()))
		if i%9 == 0 {
			pasts = append(pasts, past{db.NewSnapshot(), maps.Clone(want)})
		}
	}
	db.waitForBackground()
	require.NotZero(t, db.Metrics().Compactions)
	require.Less(t, db.Metrics().Levels[0].Files, 15)
	requireContents(t, want, db)
	for _, p := range pasts {
		requireContents(t, p.m, p.s)
		require.NoError(t, p.s.Close())
	}
}

// Level 0 is full, and its second file is damaged: those below it are merged, whatever
// their sizes, and writers do not wait for ever.
func TestWritersGoOnAboveADamagedFile(t *testing.T) {
	t.Parallel()
	for _, growth := range []int{1, 3} { // of files from young to old
		o := quarantineOptions()
		o.L0CompactionThreshold, o.L0SlowdownThreshold, o.L0StopThreshold = 100, 100, 101
		o.harness.FS, o.MemtableSize, o.SeparateFrom = sift.NewMem(), 1<<20, -1
		db, err := Open("db", o)
		require.NoError(t, err)
		want := storetest.Model{}
		size := 400_000
		for i := range 6 {
			want[strconv.Itoa(i)] = string(make([]byte, size))
			set(t, db, strconv.Itoa(i), want[strconv.Itoa(i)])
			require.NoError(t, db.Flush(t.Context()))
			size /= growth
		}
		db.mu.Lock()
		require.Len(t, db.current.Level0(), 6)
		db.current.Level0()[1].Quarantined = true
		db.opts.L0CompactionThreshold, db.opts.L0SlowdownThreshold, db.opts.L0StopThreshold = 4, 4, 5
		db.mu.Unlock()
		set(t, db, "k", "v")
		want["k"] = "v"
		require.NoError(t, db.makeRoomForTest())
		requireContents(t, want, db)
		require.NoError(t, db.Close())
	}
}

// Level 0 is full, and damaged files of it, or of the level below, keep its files from being merged: writers get an
// error that says which, and what to do, where they would wait for ever.
func TestWritersAreToldThatLevel0IsStuck(t *testing.T) {
	t.Parallel()
	t.Run("files of level 0", func(t *testing.T) { testLevel0IsStuck(t, false) })
	t.Run("a file below", func(t *testing.T) { testLevel0IsStuck(t, true) })
}

func testLevel0IsStuck(t *testing.T, below bool) {
	t.Parallel()
	o := quarantineOptions()
	o.L0CompactionThreshold, o.L0SlowdownThreshold, o.L0StopThreshold = 100, 100, 101
	o.harness.FS = sift.NewMem()
	db, err := Open("db", o)
	require.NoError(t, err)
	if below {
		set(t, db, "a", "below")
		require.NoError(t, db.Compact(t.Context(), nil, nil))
	}
	for i := range 8 {
		set(t, db, "a", strconv.Itoa(i)) // files that shared no keys could go down
		require.NoError(t, db.Flush(t.Context()))
	}
	db.mu.Lock()
	var damaged []string
	n := 0
	db.current.All(func(level int, file *version.Table) {
		if n++; below && level > 0 || !below && n%2 == 0 {
			file.Quarantined = true
			damaged = append(damaged, db.tables.Path(file.Num))
		}
	})
	for _, file := range db.current.Level0() {
		file.Compacting = below // those that are merged with each other go on, and end
	}
	db.opts.L0CompactionThreshold, db.opts.L0SlowdownThreshold, db.opts.L0StopThreshold = 3, 3, 4
	db.mu.Unlock()
	set(t, db, "k", "v")
	err = db.makeRoomForTest()
	require.ErrorIs(t, err, ErrReadOnly)
	require.ErrorIs(t, err, ErrCorruption)
	require.ErrorContains(t, err, ": siftkv repair db")
	require.NotEmpty(t, damaged)
	require.ErrorContains(t, err, "because of damaged ones: "+strings.Join(damaged, ", "))
	require.NoError(t, db.Close())
}

// A process that has too many files open, or may not read one, knows nothing against the
// file: it is tried again, however often that fails. A file that the disk does not give out
// is tried again later.
func TestAFileIsNotLeftAloneForWhatIsNotItsFault(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, fs.ErrPermission, errDisk} {
		f := &vfstest.FaultFS{FS: sift.NewMem()}
		o := quarantineOptions()
		o.harness.FS, o.L0CompactionThreshold = f, 10
		db, err := Open("db", o)
		require.NoError(t, err)
		set(t, db, "a", "1")
		require.NoError(t, db.Flush(t.Context()))
		require.NoError(t, db.Close())
		compacted := make(chan struct{}, 10)
		o.harness.Backoff, o.L0CompactionThreshold = quickBackoff, 2
		o.Events.Compacted = func(CompactionInfo) { compacted <- struct{}{} }
		o.Events.Quarantined = func(err error) { require.ErrorIs(t, err, errDisk) }
		db, err = Open("db", o)
		require.NoError(t, err)
		left := 3 * compaction.MaxReadFailures
		f.Set(func(c vfstest.Call) (int, error) {
			if c.Op == "open" && left > 0 {
				left--
				return 0, cause
			}
			return 0, nil
		})
		set(t, db, "a", "2")
		require.NoError(t, db.Flush(t.Context()))
		<-compacted
		require.Zero(t, db.Metrics().QuarantinedTables, cause)
		requireContents(t, storetest.Model{"a": "2"}, db)
		require.NoError(t, db.Close())
	}
}

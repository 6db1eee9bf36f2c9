package kv

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/sstable"
)

// What a compaction kept for a snapshot goes with the next, though that was asked for
// while the first was at work.
func TestACompactionMergesWhatCameWhileItWaited(t *testing.T) {
	created, goOn := make(chan struct{}), make(chan struct{})
	gate := &vfstest.GateFS{FS: vfs.NewMem(), Table: func() {}}
	db := openDir(t, "db", &Options{harness: harness.Harness{FS: gate}, L0CompactionThreshold: 50})
	defer func() { require.NoError(t, db.Close()) }()
	set(t, db, "k", "1")
	s := db.NewSnapshot()
	require.NoError(t, db.Delete([]byte("k"), nil))
	require.NoError(t, db.Flush(t.Context()))
	gate.Table = func() { created <- struct{}{}; <-goOn }
	done := make(chan error, 2)
	compact := func() { done <- db.Compact(t.Context(), nil, nil) }
	go compact()
	<-created
	gate.Table = func() {}
	require.NoError(t, s.Close())
	go compact()
	storetest.Until(func() bool {
		db.mu.Lock()
		defer db.mu.Unlock()
		return len(db.compactions.Wanted) == 1
	})
	close(goOn)
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	require.Zero(t, db.Metrics().Levels[lastLevel].Entries)
}

// A holdFS holds the first table that is created after arm until it is released.
type holdFS struct {
	vfstest.GateFS
	armed    atomic.Bool
	held     chan struct{} // closed when it is
	released chan struct{}
}

func newHoldFS() *holdFS {
	h := &holdFS{held: make(chan struct{}), released: make(chan struct{})}
	h.GateFS = vfstest.GateFS{FS: vfs.NewMem(), Table: func() {
		if h.armed.Swap(false) {
			close(h.held)
			<-h.released
		}
	}}
	return h
}

// While a compaction that somebody asked for takes its time, others keep level 0 short, in
// every kind of store and with one thread for them: writes go on for as long as one likes.
func TestWritesGoOnBesideACompactionThatTakesLong(t *testing.T) {
	for kind := range numCompactions {
		fsys := newHoldFS()
		db := openDir(t, "db", &Options{harness: harness.Harness{FS: fsys}, Compaction: kind,
			MaxConcurrentCompactions: 1,
			L0CompactionThreshold:    3, L0SlowdownThreshold: 4, L0StopThreshold: 6})
		want := storetest.Model{}
		write := func(k string) {
			want[k] += "+"
			set(t, db, k, want[k])
		}
		write("a")
		write("z")
		require.NoError(t, db.Flush(t.Context()))
		db.waitForBackground()
		write("a")
		require.NoError(t, db.Flush(t.Context()))
		fsys.armed.Store(true)
		done := make(chan error)
		go func() { done <- db.Compact(t.Context(), nil, nil) }()
		<-fsys.held
		for i := range 50 {
			write(fmt.Sprintf("%02d", i%7))
			require.NoError(t, db.makeRoomForTest())
		}
		require.LessOrEqual(t, db.Metrics().Levels[0].Files, 5+db.opts.MaxMemtables, kind)
		requireContents(t, want, db)
		close(fsys.released)
		require.NoError(t, <-done)
		requireContents(t, want, db)
		require.NoError(t, db.Close())
	}
}

// Nor do writers wait for space in blob files, which nothing can make meanwhile.
func TestWritesOfLargeValuesGoOnBesideACompactionThatTakesLong(t *testing.T) {
	t.Parallel()
	for kind := range numCompactions {
		fsys := newHoldFS()
		db := openDir(t, "db", &Options{harness: harness.Harness{FS: fsys, BlobSize: 4 << 10}, Compaction: kind,
			MaxConcurrentCompactions: 1, SeparateFrom: 1,
			BlobSpace: 1.1, MemtableSize: 64 << 10, Compression: sstable.NoCompression})
		want := storetest.Model{}
		write := func(i int) {
			k, v := fmt.Sprintf("%02d", i%7), string(bytes.Repeat(fmt.Appendf(nil, "%04d", i), 1000))
			set(t, db, k, v)
			want[k] = v
		}
		for i := range 14 {
			write(i)
		}
		require.NoError(t, db.Flush(t.Context()))
		db.waitForBackground()
		fsys.armed.Store(true)
		done := make(chan error)
		go func() { done <- db.Compact(t.Context(), nil, nil) }()
		<-fsys.held
		for i := range 100 {
			write(i)
		}
		requireContents(t, want, db)
		close(fsys.released)
		require.NoError(t, <-done)
		requireContents(t, want, db)
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		requireBlobs(t, db)
		require.NoError(t, db.Close())
	}
}

// Compactions of ranges that have nothing to do with each other run at the same time.
func TestCompactionsOfDisjointRangesDoNotWait(t *testing.T) {
	fsys := newHoldFS()
	db := openDir(t, "db", &Options{harness: harness.Harness{FS: fsys}, L0CompactionThreshold: 50})
	for _, k := range []string{"a", "b", "y", "z"} {
		set(t, db, k, "1")
		require.NoError(t, db.Flush(t.Context()))
	}
	fsys.armed.Store(true)
	done := make(chan error)
	go func() { done <- db.Compact(t.Context(), []byte("a"), []byte("b")) }()
	<-fsys.held
	require.NoError(t, db.Compact(t.Context(), []byte("y"), []byte("z")))
	close(fsys.released)
	require.NoError(t, <-done)
	require.Zero(t, db.Metrics().Levels[0].Files)
	requireContents(t, storetest.Model{"a": "1", "b": "1", "y": "1", "z": "1"}, db)
	require.NoError(t, db.Close())
}

// A merge of large values looks often enough whether it should go on: at the bytes that
// have passed, and not at the entries alone.
func TestACompactionOfLargeValuesIsBrokenOff(t *testing.T) {
	t.Parallel()
	for _, operands := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		var armed atomic.Bool
		gate := &vfstest.GateFS{FS: vfs.NewMem(), Table: func() {
			if armed.Load() {
				cancel()
			}
		}}
		db := openDir(t, "db", &Options{harness: harness.Harness{FS: gate}, L0CompactionThreshold: 50,
			Merger: Append("")})
		value := bytes.Repeat([]byte("v"), 100<<10)
		for i := range 200 {
			if operands && i > 0 {
				require.NoError(t, db.Merge([]byte("k"), value, Async))
			} else {
				require.NoError(t, db.Set(fmt.Appendf(nil, "%03d", i), value, Async))
			}
			if i%50 == 0 {
				require.NoError(t, db.Flush(t.Context()))
			}
		}
		require.NoError(t, db.Flush(t.Context()))
		armed.Store(true)
		require.ErrorIs(t, db.Compact(ctx, nil, nil), context.Canceled)
		require.NoError(t, db.Close())
		cancel()
	}
}

// Until a compaction is done, all files that it merges are there beside what it writes.
func TestCompactKeepsItsInputUntilItIsDone(t *testing.T) {
	fsys := newHoldFS()
	db := openDir(t, "db", &Options{harness: harness.Harness{FS: fsys}, L0CompactionThreshold: 50})
	for _, k := range []string{"a", "b"} {
		set(t, db, k, "1")
		require.NoError(t, db.Flush(t.Context()))
	}
	inputs := db.Metrics().Levels[0].Files
	fsys.armed.Store(true)
	done := make(chan error)
	go func() { done <- db.Compact(t.Context(), nil, nil) }()
	<-fsys.held
	names, err := fsys.List("db")
	require.NoError(t, err)
	tables := slices.DeleteFunc(names, func(name string) bool {
		kind,
			_ := manifest.ParseFileName(name)
		return kind != manifest.FileTable
	})
	require.Len(t, tables, inputs)
	close(fsys.released)
	require.NoError(t, <-done)
	require.NoError(t, db.Close())
}

// Merges within level 0 make way for a Compact that nothing else keeps waiting: one of them
// would follow the other as long as somebody writes, and nothing would ever go down.
func TestCompactGetsItsTurnBesideMergesWithinLevel0(t *testing.T) {
	for kind := range numCompactions {
		db := openMem(t, &Options{Compaction: kind, L0CompactionThreshold: 3, L0SlowdownThreshold: 4,
			MaxConcurrentCompactions: 1})
		flush := func(files int) {
			for range files {
				set(t, db, "k", "v")
				require.NoError(t, db.Flush(t.Context()))
			}
		}
		flush(2)
		db.mu.Lock()
		merge := db.begin(db.mergeOf(db.current.Level0(), 0)) // it takes long
		db.mu.Unlock()
		done := make(chan error)
		go func() { done <- db.Compact(t.Context(), nil, nil) }()
		storetest.Until(func() bool {
			db.mu.Lock()
			defer db.mu.Unlock()
			return len(db.compactions.Wanted) == 1
		})
		flush(4)
		db.mu.Lock()
		db.end(merge)
		db.scheduleCompactionsLocked()
		next := db.compactions.Background
		db.mu.Unlock()
		db.progress.Broadcast()
		require.NoError(t, <-done)
		require.Zero(t, next, "%v: another merge comes first", kind)
		db.waitForBackground()
		require.Zero(t, db.Metrics().Levels[0].Files)
	}
}

func TestACompactionThatIsBrokenOffLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	noneLeft := leakCheck()
	var hook func()
	fsys := &vfstest.GateFS{FS: vfs.NewMem(), Table: func() {
		if hook != nil {
			hook()
		}
	}}
	db, err := Open("db", &Options{harness: harness.Harness{FS: fsys}, TargetFileSize: 16 << 10, BaseLevelSize: 1 << 20,
		L0CompactionThreshold: 100, Compression: 1})
	require.NoError(t, err)
	want := storetest.Model{}
	for i := range 30_000 {
		k := fmt.Sprintf("key%06d", i)
		want[k] = strconv.Itoa(i)
		require.NoError(t, db.Set([]byte(k), []byte(want[k]), Async))
	}
	require.NoError(t, db.Flush(t.Context()))

	for cutAt := 1; cutAt <= 5; cutAt += 2 {
		before := db.Metrics().Levels
		ctx, cancel := context.WithCancel(t.Context())
		var tables atomic.Int64 // of several ranges at once, where there are threads
		hook = func() {
			if tables.Add(1) == int64(cutAt) {
				cancel()
			}
		}
		err := db.Compact(ctx, nil, nil)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, ErrReadOnly)
		require.Equal(t, before, db.Metrics().Levels)
		requireOnlyLiveFiles(t, db)
		requireContents(t, want, db)
	}
	hook = nil

	// It also waits for others.
	d := db
	d.mu.Lock()
	other := d.begin(d.compactionInput(d.current).MergeRange(nil, nil, nil))
	d.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- db.Compact(ctx, nil, nil) }()
	storetest.Until(func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.compactions.Wanted) == 1
	})
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	d.reschedule(func() { d.end(other) })

	require.ErrorIs(t, db.Checkpoint(ctx, "copy"), context.Canceled)
	_, err = Open("copy", &Options{harness: harness.Harness{FS: fsys}, ReadOnly: true})
	require.ErrorIs(t, err, ErrNotExist)

	require.NoError(t, db.Compact(t.Context(), nil, nil))
	requireContents(t, want, db)
	require.NoError(t, db.Close())
	noneLeft()
}

func TestAReadOnlyStoreIsNotCompacted(t *testing.T) {
	fsys := vfs.NewMem()
	db, err := Open("db", &Options{harness: harness.Harness{FS: fsys}, L0CompactionThreshold: 100})
	require.NoError(t, err)
	for range 10 {
		set(t, db, "k", "v")
		require.NoError(t, db.Flush(t.Context()))
	}
	require.NoError(t, db.Close())
	before, err := fsys.List("db")
	require.NoError(t, err)
	db, err = Open("db", &Options{harness: harness.Harness{FS: fsys}, ReadOnly: true})
	require.NoError(t, err)
	require.NoError(t, db.NewSnapshot().Close())
	require.NoError(t, db.Close())
	after, err := fsys.List("db")
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// A Compact of a small range opens the files of that range, and no others.
func TestCompactOpensTheFilesOfItsRange(t *testing.T) {
	fsys := vfs.NewMem()
	o := &Options{harness: harness.Harness{FS: fsys}, TargetFileSize: 16 << 10, Compression: sstable.NoCompression,
		SeparateFrom: -1}
	db := openDir(t, "db", o)
	value := make([]byte, 1000)
	for i := range 1000 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "%04d", i), value, Async))
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.NoError(t, db.Close())

	db = openDir(t, "db", o)
	opened := func() (n int) {
		for t := range db.installed().Levels[lastLevel].All() {
			if t.Reader.Load() != nil {
				n++
			}
		}
		return n
	}
	require.Greater(t, db.installed().Levels[lastLevel].Len(), 30)
	before := opened()
	require.NoError(t, db.Compact(t.Context(), []byte("0500"), []byte("0500")))
	require.LessOrEqual(t, opened(), before+1)
	require.Zero(t, db.Metrics().Compactions, "its file has nothing to lose")
	require.NoError(t, db.Delete([]byte("0500"), Async))
	require.NoError(t, db.Compact(t.Context(), []byte("0500"), []byte("0500")))
	require.EqualValues(t, 1, db.Metrics().Compactions)
	require.EqualValues(t, 999, db.Metrics().Levels[lastLevel].Entries)
	require.Less(t, opened(), before+4)
	require.NoError(t, db.Close())
}

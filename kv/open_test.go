package kv

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
	"github.com/stretchr/testify/require"
)

// openMem opens a store of its own in memory, closed at the end of the test.
func openMem(tb testing.TB, o *Options) *DB {
	tb.Helper()
	var opts Options
	if o != nil {
		opts = *o
	}
	opts.InMemory = true
	db, err := Open("db", &opts)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, db.Close()) })
	return db
}

// openDir opens the store in a directory.
func openDir(tb testing.TB, dir string, o *Options) *DB {
	tb.Helper()
	db, err := Open(dir, o)
	require.NoError(tb, err)
	return db
}

// readDir returns the content of every file under dir, by path.
func readDir(tb testing.TB, dir string) map[string]string {
	tb.Helper()
	files := map[string]string{}
	require.NoError(tb, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files[path] = string(data)
		return err
	}))
	return files
}

func writeDir(tb testing.TB, dir string, files map[string]string) {
	tb.Helper()
	require.NoError(tb, os.MkdirAll(dir, 0o755))
	for name, data := range files {
		require.NoError(tb, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600))
	}
}

func set(tb testing.TB, db *DB, key, value string) {
	tb.Helper()
	require.NoError(tb, db.Set([]byte(key), []byte(value), NoSync))
}

func TestAfterCloseEveryMethodSaysSo(t *testing.T) {
	db, err := Open("db", &Options{InMemory: true})
	require.NoError(t, err)
	set(t, db, "a", "1")
	snapshot, filled := db.NewSnapshot(), db.NewBatch()
	require.NoError(t, filled.Set([]byte("b"), nil))
	require.ErrorIs(t, db.Close(), ErrSnapshotsOpen)
	require.NoError(t, db.Close(), "a second Close does nothing")

	later := db.NewSnapshot()
	k := []byte("a")
	_, getErr := db.Get(k)
	dst, appendErr := db.AppendGet([]byte("x"), k)
	require.Equal(t, "x", string(dst))
	_, hasErr := db.Has(k)
	_, iterErr := db.NewIter(nil)
	_, explainErr := db.Explain(k)
	_, snapGetErr := snapshot.Get(k)
	_, snapHasErr := snapshot.Has(k)
	_, snapIterErr := snapshot.NewIter(nil)
	_, laterErr := later.Get(k)
	_, beginErr := db.Begin(true)
	for name, err := range map[string]error{
		"Get": getErr, "AppendGet": appendErr, "Has": hasErr, "NewIter": iterErr, "Explain": explainErr,
		"Snapshot.Get": snapGetErr, "Snapshot.Has": snapHasErr, "Snapshot.NewIter": snapIterErr,
		"NewSnapshot": laterErr, "Begin": beginErr,
		"View": db.View(func(*Tx) error { return nil }), "Update": db.Update(func(*Tx) error { return nil }),
		"Set": db.Set(k, nil, nil), "Delete": db.Delete(k, nil), "DeleteRange": db.DeleteRange(nil, nil, Async),
		"Commit": filled.Commit(nil), "Commit of nothing": db.NewBatch().Commit(nil),
		"Flush": db.Flush(), "Compact": db.Compact(nil, nil), "Compact of nothing": db.Compact([]byte("b"), k),
		"Checkpoint": db.Checkpoint("elsewhere"), "verify": db.verify(io.Discard), "Refresh": db.Refresh(t.Context()),
	} {
		require.ErrorIs(t, err, ErrClosed, name)
	}
	require.NoError(t, snapshot.Close())
	require.NoError(t, snapshot.Close())
	require.NoError(t, later.Close())
	require.EqualValues(t, 1, db.Metrics().Writes, "counters outlive the store")
}

func TestLeakedIteratorsAreNamed(t *testing.T) {
	db, err := Open("db", &Options{InMemory: true, TraceOpens: true})
	require.NoError(t, err)
	set(t, db, "a", "1")
	closed, err := db.NewIter(nil)
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	leaked, err := db.NewIter(nil)
	require.NoError(t, err)
	snapshot := db.NewSnapshot()
	second, err := snapshot.NewIter(nil)
	require.NoError(t, err)
	require.True(t, leaked.First())

	err = db.Close()
	require.ErrorIs(t, err, ErrIteratorsOpen)
	require.ErrorIs(t, err, ErrSnapshotsOpen)
	require.Regexp(t, `snapshot 1 of 1 was opened at:\n\t.*TestLeakedIteratorsAreNamed`, err.Error())
	require.Len(t, regexp.MustCompile(`iterator \d of 2 was opened at:`).FindAllString(err.Error(), -1), 2)
	require.Regexp(t, `TestLeakedIteratorsAreNamed\n\t\t.*open_test\.go:\d+`, err.Error())
	require.NoError(t, db.Close())

	require.False(t, leaked.Next(), "it is safe to use")
	require.ErrorIs(t, leaked.Error(), ErrClosed)
	require.False(t, second.Last())
	require.NoError(t, leaked.Close())
	require.NoError(t, leaked.Close())
	require.False(t, leaked.First())
	require.NoError(t, second.Close())
	require.NoError(t, snapshot.Close())
}

func TestAForeignDirectoryIsRefusedAndUntouched(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"a text":             {"notes.txt": "mine"},
		"a name like a lock": {"LOCK.txt": "", "LOCK": "12"},
		"photographs":        {"MANIFEST-1": "x", "7.sst": "y"},
		"LevelDB": {"CURRENT": "MANIFEST-000004\n", "MANIFEST-000004": "\x56\xf9", "000003.log": "",
			"LOCK": "theirs", "LOG": "x"},
		"Pebble": {"CURRENT": "", "000002.log": "", "LOCK": "", "marker.manifest.000001.MANIFEST-000001": "",
			"MANIFEST-000001": "\x00", "OPTIONS-000003": "[Version]"},
	} {
		dir := filepath.Join(t.TempDir(), "theirs")
		writeDir(t, dir, files)
		before := readDir(t, dir)
		for _, o := range []*Options{nil, {ReadOnly: true}} {
			_, err := Open(dir, o)
			require.ErrorIs(t, err, ErrForeignDirectory, name)
			require.ErrorContains(t, err, dir)
		}
		require.Equal(t, before, readDir(t, dir), name)
	}
}

func TestANewerFormatIsRefused(t *testing.T) {
	dir := t.TempDir()
	db := openDir(t, dir, nil)
	set(t, db, "a", "1")
	require.NoError(t, db.Close())
	line, err := os.ReadFile(filepath.Join(dir, manifest.CurrentName))
	require.NoError(t, err)
	newer := strings.Replace(string(line), "format=1 ", "format=2 sharding=yes ", 1)
	require.NotEqual(t, string(line), newer)
	require.NoError(t, os.WriteFile(filepath.Join(dir, manifest.CurrentName), []byte(newer), 0o600))
	before := readDir(t, dir)
	for _, o := range []*Options{nil, {ReadOnly: true}} {
		_, err = Open(dir, o)
		require.ErrorIs(t, err, ErrNewerFormat)
		require.NotErrorIs(t, err, ErrCorruption)
		require.ErrorContains(t, err, filepath.Join(dir, manifest.CurrentName))
	}
	require.Equal(t, before, readDir(t, dir))
}

func TestReadOnlyChangesNothing(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	_, err := Open(missing, &Options{ReadOnly: true})
	require.ErrorIs(t, err, ErrNotExist)
	require.NoDirExists(t, missing)
	empty := t.TempDir()
	_, err = Open(empty, &Options{ReadOnly: true})
	require.ErrorIs(t, err, ErrNotExist)
	require.Empty(t, readDir(t, empty))

	dir := t.TempDir()
	db := openDir(t, dir, nil)
	set(t, db, "in a table", "1")
	require.NoError(t, db.Flush())
	set(t, db, "in the log", "2")
	require.NoError(t, db.Close())
	before := readDir(t, dir)

	a := openDir(t, dir, &Options{ReadOnly: true})
	b := openDir(t, dir, &Options{ReadOnly: true})
	_, err = Open(dir, nil)
	require.ErrorIs(t, err, ErrLocked, "a writer is kept out by readers")
	for _, db := range []*DB{a, b} {
		requireContents(t, model{"in a table": "1", "in the log": "2"}, db)
		k := []byte("k")
		batch := db.NewBatch()
		require.NoError(t, batch.Set(k, nil))
		for name, err := range map[string]error{
			"Set": db.Set(k, k, nil), "Delete": db.Delete(k, Async), "DeleteRange": db.DeleteRange(nil, nil, nil),
			"Commit": batch.Commit(NoSync), "Flush": db.Flush(), "Compact": db.Compact(nil, nil),
			"Compact of nothing": db.Compact([]byte("b"), []byte("a")),
		} {
			require.ErrorIs(t, err, ErrReadOnly, name)
		}
		require.NoError(t, db.Close())
	}
	require.Equal(t, before, readDir(t, dir))
}

func TestOneProcessLocksOnce(t *testing.T) {
	dir := t.TempDir()
	db := openDir(t, dir, nil)
	for _, o := range []*Options{nil, {ReadOnly: true}} {
		_, err := Open(dir, o)
		require.ErrorIs(t, err, ErrLocked)
		require.ErrorContains(t, err, filepath.Join(dir, manifest.LockName))
		require.ErrorContains(t, err, fmt.Sprintf("this process (%d)", os.Getpid()))
	}
	set(t, db, "a", "1")
	require.NoError(t, db.Close())
	require.NoError(t, openDir(t, dir, nil).Close())
}

func TestAnUnfinishedCreationIsFinished(t *testing.T) {
	// What a crash leaves that comes before CURRENT has its name.
	whole := t.TempDir()
	require.NoError(t, openDir(t, whole, nil).Close())
	first, err := os.ReadFile(filepath.Join(whole, "MANIFEST-000001"))
	require.NoError(t, err)
	for name, files := range map[string]map[string]string{
		"lock":             {"LOCK": "123\n"},
		"manifest":         {"LOCK": "", "MANIFEST-000001": string(first)},
		"half a manifest":  {"LOCK": "", "MANIFEST-000001": string(first[:40])},
		"an empty CURRENT": {"LOCK": "", "MANIFEST-000001": string(first), "CURRENT.tmp": ""},
	} {
		dir := filepath.Join(t.TempDir(), "store")
		writeDir(t, dir, files)
		db, err := Open(dir, nil)
		require.NoError(t, err, name)
		set(t, db, "a", "1")
		require.NoError(t, db.Close())
		db = openDir(t, dir, nil)
		requireContents(t, model{"a": "1"}, db)
		require.NoError(t, db.Close())
		require.NoFileExists(t, filepath.Join(dir, "CURRENT.tmp"))
	}
}

func TestBadOptionsAreNamed(t *testing.T) {
	for name, o := range map[string]*Options{
		"MemoryLimit":              {MemoryLimit: 1 << 20},
		"MemoryLimit is 8388608":   {MemoryLimit: 8 << 20, MemtableSize: 4 << 20}, // and three of them
		"MemtableSize":             {MemtableSize: 1},
		"MaxMemtables":             {MaxMemtables: 1},
		"BlockSize":                {BlockSize: 10},
		"BlockSize is 3145728":     {BlockSize: 3 << 20, CacheSize: 1 << 30},
		"CacheSize is 65536":       {BlockSize: 32 << 10, CacheSize: 64 << 10},
		"CacheSize of 40008":       {BlockSize: 5001, CacheSize: 40_007},
		"IndexPartition":           {IndexPartition: 10},
		"Compression":              {Compression: 9},
		"TargetFileSize":           {TargetFileSize: 1 << 10},
		"BaseLevelSize":            {BaseLevelSize: 1 << 20, TargetFileSize: 2 << 20},
		"L0CompactionThreshold":    {L0CompactionThreshold: -1},
		"L0SlowdownThreshold":      {L0SlowdownThreshold: 2},
		"L0StopThreshold":          {L0StopThreshold: 5},
		"Compaction is 3":          {Compaction: 3},
		"RunsPerLevel":             {RunsPerLevel: 1},
		"RunsPerLevel is 65":       {RunsPerLevel: 65},
		"CompactionRate is 1000":   {CompactionRate: 1000},
		"CompactionRate is -1":     {CompactionRate: -1},
		"LevelCompression[6] is 7": {LevelCompression: [NumLevels]sstable.Compression{6: 7}},
		"MaxConcurrentCompactions": {MaxConcurrentCompactions: -4},
	} {
		mem := vfs.NewMem()
		o.fs = mem
		_, err := Open("db", o)
		require.ErrorIs(t, err, ErrInvalidOptions, name)
		require.ErrorContains(t, err, name)
		_, err = mem.List("db")
		require.Error(t, err, "nothing was made")
	}
	require.NoError(t, openMem(t, &Options{CacheSize: -1, Compression: sstable.Zstd, MemoryLimit: 4 << 20}).Flush())
}

// The largest blocks that Open accepts for a cache are kept by it.
func TestBlocksThatAreAcceptedAreCached(t *testing.T) {
	for _, o := range []Options{
		{BlockSize: 64, CacheSize: 512},
		{BlockSize: 5001, CacheSize: 40_008},
		{BlockSize: 32 << 10, CacheSize: 256 << 10},
		{BlockSize: 1 << 20, CacheSize: 8 << 20},
		{BlockSize: 1 << 20, CacheSize: 40 << 20},
		{BlockSize: 3 << 20, CacheSize: -1}, // none was asked for
	} {
		db := openMem(t, &o)
		entry := make([]byte, o.BlockSize/2)
		for i := range 6 {
			require.NoError(t, db.Set(settledKey(i), entry, Async))
		}
		require.NoError(t, db.Flush())
		for range 5 {
			_, err := db.Get(settledKey(0))
			require.NoError(t, err)
		}
		hits := db.Metrics().Levels[0].Lookup.BlocksFromCache
		if o.CacheSize < 0 {
			require.Zero(t, hits)
			continue
		}
		require.EqualValues(t, 4, hits, "%d of %d bytes", o.BlockSize, o.CacheSize)
	}
	disk := vfs.NewMem()
	db, err := Open("db", &Options{fs: disk})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	db, err = Open("db", &Options{fs: disk, ReadOnly: true, BlockSize: 3 << 20})
	require.NoError(t, err, "nothing is written")
	require.NoError(t, db.Close())
}

// TestCloseDuringFlush closes a store while a caller of Flush waits for room and
// the flusher is about to look for more work.
func TestCloseDuringFlush(t *testing.T) {
	inEvent, goOn := make(chan bool), make(chan bool)
	first := true
	db, err := Open("db", &Options{InMemory: true, MemtableSize: 64 << 10, MaxMemtables: 2, Events: Events{
		Flushed: func(FlushInfo) {
			if first {
				first = false
				inEvent <- true
				<-goOn
			}
		},
	}})
	require.NoError(t, err)
	set(t, db, "a", "1")
	go func() { _ = db.Flush() }() // returns when the store closes, at the latest
	<-inEvent
	for db.Metrics().Memtables < 2 { // the next memtable is full, and waits
		set(t, db, "b", strings.Repeat("x", 20<<10))
	}
	flushed, closed := make(chan error), make(chan error)
	go func() { flushed <- db.Flush() }()
	until(func() bool {
		leading, _ := db.commits.Queue()
		return leading // it holds up the pipeline, and waits
	})
	go func() { closed <- db.Close() }()
	until(func() bool {
		db.mu.Lock()
		defer db.mu.Unlock()
		return db.closing
	})
	close(goOn)
	require.NoError(t, <-closed)
	require.ErrorIs(t, <-flushed, ErrClosed)
}

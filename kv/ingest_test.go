package kv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	internal "github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/sstable"
)

func TestIngest(t *testing.T) {
	dir := t.TempDir()
	db := openDir(t, dir, nil)
	for _, k := range []string{"a", "b", "c", "d", "e", "z"} {
		set(t, db, k, "old")
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	set(t, db, "c", "in the memtable")
	before := db.NewSnapshot()
	it, err := db.NewIter(nil)
	require.NoError(t, err)

	from := t.TempDir()
	first := ingestFile(t, vfs.OS, filepath.Join(from, "first"), nil, "a=new", "-b", "c=new", "cc=new")
	second := ingestFile(t, vfs.OS, filepath.Join(from, "second"), nil, "d..f", "dd=new")
	third := ingestFile(t, vfs.OS, filepath.Join(from, "third"), nil, "zz=new")
	empty := ingestFile(t, vfs.OS, filepath.Join(from, "empty"), nil)
	require.NoError(t, db.Ingest(t.Context(), []string{third, second, empty, first}, nil))

	then := storetest.Model{"a": "old", "b": "old", "c": "in the memtable", "d": "old", "e": "old", "z": "old"}
	now := storetest.Model{"a": "new", "c": "new", "cc": "new", "dd": "new", "z": "old", "zz": "new"}
	check := func() {
		t.Helper()
		requireContents(t, now, db)
		for _, k := range append(now.Keys(), then.Keys()...) {
			v, err := db.Get([]byte(k))
			require.Equal(t, now[k], string(v), "%q: %v", k, err)
		}
		require.NoError(t, db.verify(io.Discard))
		checkIdentities(t, db.Metrics())
	}
	check()
	requireContents(t, then, before)
	for ok, n := it.First(), 0; ok; ok, n = it.Next(), n+1 {
		require.Equal(t, then.Keys()[n], string(it.Key()))
	}
	require.NoError(t, it.Close())
	m := db.Metrics()
	require.EqualValues(t, 1, m.Ingests)
	require.EqualValues(t, 3, m.IngestedFiles)
	require.Equal(t, 1, m.Levels[lastLevel].Files-1,
		"the third file overlaps nothing, and stands beside the first compaction's")

	set(t, db, "a", "newer")
	now["a"] = "newer"
	check()
	require.NoError(t, db.Flush(t.Context()))
	check()
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	check()
	requireContents(t, then, before)
	require.NoError(t, before.Close())
	require.NoError(t, db.Close())
	require.NoError(t, Verify(t.Context(), dir, io.Discard))
	db = openDir(t, dir, nil)
	check()
	require.NoError(t, db.Close())
	for _, path := range []string{first, second, third} {
		require.FileExists(t, path, "originals stay")
	}
}

// Ingested files keep their sequence number when the store is opened again before
// they are compacted.
func TestIngestedFilesAreReopened(t *testing.T) {
	mem := vfs.NewMem()
	open := func() *DB {
		db, err := Open("db", &Options{harness: harness.Harness{FS: mem}, L0CompactionThreshold: 100,
			L0SlowdownThreshold: 200,
			L0StopThreshold:     300})
		require.NoError(t, err)
		return db
	}
	db := open()
	set(t, db, "k", "0")
	for i := range 5 {
		path := ingestFile(t, mem, fmt.Sprint("file", i), nil, fmt.Sprintf("k=%d", 2*i+1), fmt.Sprintf("only/%d=", i))
		require.NoError(t, db.Ingest(t.Context(), []string{path}, nil))
		requireGet(t, db, "k", strconv.Itoa(2*i+1))
		require.NoError(t, db.Close())
		db = open()
		requireGet(t, db, "k", strconv.Itoa(2*i+1))
		set(t, db, "k", strconv.Itoa(2*i+2))
		requireGet(t, db, "k", strconv.Itoa(2*i+2))
	}
	require.NoError(t, db.verify(io.Discard))
	require.NoError(t, db.Close())
}

func requireGet(t *testing.T, db Reader, key, want string) {
	t.Helper()
	v, err := db.Get([]byte(key))
	require.NoError(t, err)
	require.Equal(t, want, string(v))
}

func TestIngestRefuses(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	file := func(name string, writes ...string) string {
		return ingestFile(t, vfs.OS, filepath.Join(from, name),
			&sstable.WriterOptions{Compression: sstable.NoCompression}, writes...)
	}
	whole := file("whole", "a=1", "m=2")
	damaged := file("damaged", "x=1", "y=2")
	rewrite(t, damaged, flip(5))
	cut := file("cut", "x=1")
	require.NoError(t, os.Truncate(cut, 100))
	numbered := filepath.Join(from, "numbered")
	twice := filepath.Join(from, "twice")
	operand := filepath.Join(from, "operand")
	apart := filepath.Join(from, "apart")
	for path, keys := range map[string][]base.InternalKey{
		numbered: {base.MakeKey([]byte("n"), 7, base.KindSet)},
		operand:  {base.MakeKey([]byte("o"), 0, base.KindMerge)},
		apart:    {base.MakeKey([]byte("p"), 0, base.KindSetSeparated)},
		twice:    {base.MakeKey([]byte("t"), 0, base.KindSet), base.MakeKey([]byte("t"), 0, base.KindDelete)},
	} {
		f, err := os.Create(path)
		require.NoError(t, err)
		w := internal.NewWriter(f, nil)
		w.KnowBlobs(func(uint64) uint64 { return 1 })
		for _, k := range keys {
			var value []byte
			if k.Kind().Separated() {
				value = blob.Handle{File: 5, Offset: 32, Length: 100, Size: 80}.Append(nil)
			}
			require.NoError(t, w.Add(k, value))
		}
		_, err = w.Finish()
		require.NoError(t, errors.Join(err, f.Close()))
	}
	long := string(make([]byte, MaxKeySize+1))
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		ctx   context.Context
		paths []string
		want  error
		text  string
	}{
		"overlap": {paths: []string{whole, file("overlap", "k=1", "z=2")}, want: ErrNotIngestible,
			text: "overlap"},
		"overlapping range": {paths: []string{whole, file("range", "b..c")}, want: ErrNotIngestible, text: "overlap"},
		"the same twice":    {paths: []string{whole, whole}, want: ErrNotIngestible, text: "overlap"},
		"long key": {paths: []string{whole, file("long", "n=", "n"+long+"=", "o=")}, want: ErrTooLarge,
			text: "long"},
		"long end": {paths: []string{whole, file("end", "n..n"+long)}, want: ErrTooLarge, text: "end"},
		"damaged":  {paths: []string{whole, damaged}, want: ErrCorruption, text: damaged},
		"cut":      {paths: []string{whole, cut}, want: ErrCorruption, text: cut},
		"missing": {paths: []string{whole, filepath.Join(from, "missing")}, want: fs.ErrNotExist,
			text: "missing"},
		"sequence numbers": {paths: []string{whole, numbered}, want: ErrNotIngestible, text: "up to 7"},
		"a key twice":      {paths: []string{whole, twice}, want: ErrNotIngestible, text: "twice"},
		"operands":         {paths: []string{whole, operand}, want: ErrNotIngestible, text: "1 merge operands"},
		"handles":          {paths: []string{whole, apart}, want: ErrNotIngestible, text: "1 values in blob files"},
		"cancelled":        {ctx: cancelled, paths: []string{whole}, want: context.Canceled, text: "broken off"},
	} {
		for _, copies := range []bool{false, true} {
			dir := t.TempDir()
			db := openDir(t, dir, nil)
			set(t, db, "k", "v")
			ctx := c.ctx
			if ctx == nil {
				ctx = context.Background()
			}
			err := db.Ingest(ctx, c.paths, &IngestOptions{Link: !copies})
			require.ErrorIs(t, err, c.want, name)
			require.ErrorContains(t, err, c.text, name)
			requireContents(t, storetest.Model{"k": "v"}, db)
			names, err := filepath.Glob(filepath.Join(dir, "*.sst"))
			require.NoError(t, err)
			require.Empty(t, names, "%s: files are left behind", name)
			require.NoError(t, db.Ingest(t.Context(), []string{whole}, nil), "the store goes on")
			requireContents(t, storetest.Model{"k": "v", "a": "1", "m": "2"}, db)
			require.NoError(t, db.Close())
			require.ErrorIs(t, db.Ingest(t.Context(), []string{whole}, nil), ErrClosed)
			ro := openDir(t, dir, &Options{ReadOnly: true})
			require.ErrorIs(t, ro.Ingest(t.Context(), []string{whole}, nil), ErrReadOnly)
			require.NoError(t, ro.Close())
		}
	}
}

func TestIngestWithoutVerification(t *testing.T) {
	from := t.TempDir()
	damaged := ingestFile(t, vfs.OS, filepath.Join(from, "damaged"),
		&sstable.WriterOptions{Compression: sstable.NoCompression}, "x=1")
	rewrite(t, damaged, flip(5))
	db := openMem(t, nil)
	require.NoError(t, db.Ingest(context.Background(), []string{damaged}, &IngestOptions{SkipVerify: true}))
	_, err := db.Get([]byte("x"))
	require.ErrorIs(t, err, ErrCorruption, "it was taken on trust, and is still checked when read")
	require.NoError(t, db.Ingest(t.Context(), nil, nil))
}

// A file is linked where that is possible, through symbolic links to itself, and a
// copy shares nothing with the original.
func TestIngestLinksOrCopies(t *testing.T) {
	from := t.TempDir()
	path := ingestFile(t, vfs.OS, filepath.Join(from, "file"),
		&sstable.WriterOptions{Compression: sstable.NoCompression}, "x=1")
	link := filepath.Join(from, "link")
	require.NoError(t, os.Symlink("file", link))
	for _, c := range []struct {
		path string
		same bool
	}{{path, true}, {link, true}, {path, false}} {
		dir := t.TempDir()
		db := openDir(t, dir, nil)
		require.NoError(t, db.Ingest(context.Background(), []string{c.path}, &IngestOptions{Link: c.same}))
		a, err := os.Stat(path)
		require.NoError(t, err)
		b, err := os.Lstat(only(t, dir, manifest.FileTable))
		require.NoError(t, err)
		require.Equal(t, c.same, os.SameFile(a, b))
		require.True(t, b.Mode().IsRegular())
		if !c.same { // the next file of the same name is the program's own
			require.NoError(t, os.WriteFile(path, []byte("next"), 0o600))
			requireGet(t, db, "x", "1")
			require.NoError(t, db.Compact(t.Context(), nil, nil))
		}
		require.NoError(t, db.Close())
	}
}

// bringIn brings a file into the store's directory, as an ingest does before its turn.
func bringIn(t *testing.T, in *ingestJob, path string) {
	t.Helper()
	num := in.d.newFileNum()
	require.NoError(t, in.files.Bring([]string{path}, manifest.Ingest{First: num, Last: num}))
}

// Writes that come in between the flush and the ingest's turn are older than the
// ingest, and go to tables before it does.
func TestWritesJustBeforeAnIngest(t *testing.T) {
	db, err := Open("db", &Options{harness: harness.Harness{FS: vfs.NewMem()}})
	require.NoError(t, err)
	in := newIngest(t.Context(), db, &IngestOptions{})
	require.NoError(t, in.begin())
	bringIn(t, in, ingestFile(t, db.fs, "file", nil, "k=ingested"))
	set(t, db, "k", "just before")
	set(t, db, "before", "too")
	require.NoError(t, exclusive(db, in.install))
	in.end()
	requireGet(t, db, "k", "ingested")
	requireGet(t, db, "before", "too")
	db.mu.Lock()
	require.Empty(t, db.imms)
	require.True(t, db.mem.Empty(), "tables would hold a history with a hole")
	db.mu.Unlock()
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	requireGet(t, db, "k", "ingested")
	require.NoError(t, db.Close())
}

// A reader that has the state before an ingest does not see what was written after it.
func TestAStateBeforeAnIngestIsInThePast(t *testing.T) {
	db := openMem(t, nil)
	path := ingestFile(t, vfs.OS, filepath.Join(t.TempDir(), "file"), nil, "k=v")
	s := db.acquire(0)
	defer s.release(0)
	require.NoError(t, db.Ingest(t.Context(), []string{path}, nil))
	set(t, db, "later", "v")
	for _, k := range []string{"k", "later"} {
		l := lookup{d: db, key: []byte(k), hash: filterpolicy.Hash([]byte(k)), at: db.seq()}
		found, err := l.run(s)
		require.NoError(t, err)
		require.False(t, found, k)
		requireGet(t, db, k, "v")
	}
}

// An ingested file goes as deep as it fits, and never below something that it hides.
func TestIngestPlacesFiles(t *testing.T) {
	mem := vfs.NewMem()
	db, err := Open("db", &Options{harness: harness.Harness{FS: mem}, L0CompactionThreshold: 100,
		L0SlowdownThreshold: 200, L0StopThreshold: 300})
	require.NoError(t, err)
	files := func() (n []int) {
		for _, l := range db.Metrics().Levels {
			n = append(n, l.Files)
		}
		return n
	}
	ingest := func(name string, writes ...string) {
		require.NoError(t, db.Ingest(t.Context(), []string{ingestFile(t, mem, name, nil, writes...)}, nil))
	}
	ingest("f1", "b=", "d=")
	require.Equal(t, []int{0, 0, 0, 0, 0, 0, 1}, files())
	ingest("f2", "e=", "g=")
	require.Equal(t, []int{0, 0, 0, 0, 0, 0, 2}, files())
	ingest("f3", "c=")
	require.Equal(t, []int{1, 0, 0, 0, 0, 0, 2}, files(), "level 6 has its key")
	ingest("f4", "c..e")
	require.Equal(t, []int{2, 0, 0, 0, 0, 0, 2}, files())
	ingest("f5", "e..z")
	require.Equal(t, []int{3, 0, 0, 0, 0, 0, 2}, files())
	ingest("f6", "y=")
	require.Equal(t, []int{4, 0, 0, 0, 0, 0, 2}, files(), "a range tombstone in level 0 is over its key")
	requireContents(t, storetest.Model{"b": "", "y": ""}, db)

	db.mu.Lock()
	other := db.compactions.Reserve(lastLevel, version.Span{Lo: []byte("z")})
	db.mu.Unlock()
	ingest("f7", "zz=")
	require.Equal(t, []int{5, 0, 0, 0, 0, 0, 2}, files(), "a compaction may write over its key")
	db.mu.Lock()
	require.Equal(t, []*compaction.Reservation{other}, db.compactions.Reserved)
	require.Zero(t, db.compactions.Running)
	db.compactions.Release(other)
	db.mu.Unlock()
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	requireContents(t, storetest.Model{"b": "", "y": "", "zz": ""}, db)
	require.NoError(t, db.verify(io.Discard))
	require.NoError(t, db.Close())
}

// Ingest refuses a store whose last commit has failed: what is in the log of that
// commit has the sequence number that the files would be put after.
func TestIngestRefusesAStoreThatHasFailed(t *testing.T) {
	for _, mode := range []RecoveryMode{PointInTime, TolerateTornTail} {
		disk := crashfs.NewDisk()
		crash := crashfs.New(disk, nothing)
		f := &vfstest.FaultFS{FS: crash}
		db, err := Open("db", &Options{harness: harness.Harness{FS: f, Backoff: never}, CacheSize: -1})
		require.NoError(t, err)
		require.NoError(t, db.Set([]byte("a"), []byte("1"), Sync))
		require.NoError(t, db.Flush(t.Context()))
		file := ingestFile(t, crash, "new.sst", nil, "b=ingested")
		require.NoError(t, crash.SyncFile(file))
		// The write fails while the ingest waits in the queue after it.
		in := newIngest(t.Context(), db, &IngestOptions{})
		require.NoError(t, in.begin())
		bringIn(t, in, file)
		failOnce(f, "sync")
		require.ErrorIs(t, db.Set([]byte("c"), []byte("failed"), Sync), errDisk)
		require.ErrorIs(t, exclusive(db, in.install), ErrReadOnly)
		in.files.TakeBack()
		in.end()
		after := disk.CutTo(100, rand.New(rand.NewPCG(1, 1)))
		again, err := Open("db", &Options{harness: harness.Harness{FS: crashfs.New(after, nothing)}, CacheSize: -1,
			RecoveryMode: mode})
		require.NoError(t, err)
		ok, err := again.Has([]byte("b"))
		require.NoError(t, err)
		require.False(t, ok)
		require.NoError(t, again.Close())
		require.NoError(t, db.Close())
	}
}

// TestCloseWaitsForAnIngest closes the store in the middle of an ingest, which must
// not leave a file in a directory that may be another's by then.
func TestCloseWaitsForAnIngest(t *testing.T) {
	mem := crashfs.NewDisk()
	var db *DB
	var closing atomic.Bool
	closed := make(chan error, 1)
	path := ingestFile(t, crashfs.New(mem, nothing), "file", nil, "k=v")
	fsys := crashfs.New(mem, func() error {
		if closing.CompareAndSwap(true, false) {
			go func() { closed <- db.Close() }()
			for !db.closed.Load() {
				runtime.Gosched()
			}
		}
		return nil
	})
	db, err := Open("db", &Options{harness: harness.Harness{FS: fsys}})
	require.NoError(t, err)
	closing.Store(true)
	require.ErrorIs(t, db.Ingest(t.Context(), []string{path}, nil), ErrClosed)
	require.NoError(t, <-closed)
	names, err := fsys.List("db")
	require.NoError(t, err)
	for _, name := range names {
		kind, _ := manifest.ParseFileName(name)
		require.NotEqual(t, manifest.FileTable, kind)
	}
}

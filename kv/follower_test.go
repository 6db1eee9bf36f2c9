package kv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/sstable"
)

// openView opens a view of the store in a directory.
func openView(tb testing.TB, dir string, o *Options) *DB {
	tb.Helper()
	db, err := OpenReadOnly(dir, o)
	require.NoError(tb, err)
	closeAtEnd(tb, db)
	return db
}

// openWriter opens a store, which is closed with the test if not before.
func openWriter(tb testing.TB, dir string, o *Options) *DB {
	tb.Helper()
	db := openDir(tb, dir, o)
	closeAtEnd(tb, db)
	return db
}

func tinyOptions() *Options {
	return &Options{MemtableSize: 64 << 10, TargetFileSize: 16 << 10, BaseLevelSize: 64 << 10, BlockSize: 512,
		L0CompactionThreshold: 2}
}

// registeredReaders returns the names of registrations.
func registeredReaders(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if kind, _ := manifest.ParseFileName(e.Name()); kind == manifest.FileReader {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestAViewIsWhatTheStoreWasUntilItIsRefreshed(t *testing.T) {
	t.Parallel()
	t.Cleanup(leakCheck())
	dir := filepath.Join(t.TempDir(), "store")
	_, err := OpenReadOnly(dir, nil)
	require.ErrorIs(t, err, ErrNotExist)
	_, err = OpenReadOnly(dir, &Options{InMemory: true})
	require.ErrorIs(t, err, ErrInvalidOptions)

	w := openWriter(t, dir, tinyOptions())
	require.NoError(t, w.Refresh(t.Context()), "a writer is never behind")
	view := openView(t, dir, nil)
	requireContents(t, storetest.Model{}, view)
	require.Len(t, registeredReaders(t, dir), 1)

	want := storetest.Model{}
	rng := rand.New(rand.NewPCG(1, 61))
	for round := range 40 {
		before := maps.Clone(want)
		snapshot := view.NewSnapshot()
		it, err := view.NewIter(nil)
		require.NoError(t, err)
		changeAtRandom(t, w, want, rng, round)
		requireContents(t, before, view)
		require.NoError(t, view.Refresh(t.Context()))
		requireContents(t, want, view)
		requireContents(t, before, snapshot)
		requireIterates(t, before, it)
		for _, k := range before.Keys() {
			v, err := snapshot.Get([]byte(k))
			require.NoError(t, err)
			require.Equal(t, before[k], string(v))
			ok, err := snapshot.Has([]byte(k + "?"))
			require.NoError(t, err)
			require.False(t, ok)
		}
		require.NoError(t, it.Close())
		require.NoError(t, snapshot.Close())
		_, err = snapshot.Get([]byte("k"))
		require.ErrorIs(t, err, ErrClosed)
	}
	k := []byte("k")
	for _, err := range []error{view.Set(k, k, nil), view.Flush(t.Context()), view.Compact(t.Context(), nil, nil),
		view.DeleteRange(nil, nil, nil)} {
		require.ErrorIs(t, err, ErrReadOnly)
	}
	require.NoError(t, view.Close())
	require.ErrorIs(t, view.Refresh(t.Context()), ErrClosed)
	require.Empty(t, registeredReaders(t, dir))
}

func requireIterates(t *testing.T, want storetest.Model, it *Iterator) {
	t.Helper()
	keys := want.Keys()
	for ok := it.First(); ok; ok = it.Next() {
		require.NotEmpty(t, keys)
		require.Equal(t, keys[0], string(it.Key()))
		require.Equal(t, want[keys[0]], string(it.Value()))
		keys = keys[1:]
	}
	require.NoError(t, it.Error())
	require.Empty(t, keys)
}

func TestFilesThatAReaderNeedsAreHeldUntilItRefreshes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	w := openWriter(t, dir, tinyOptions())
	want := storetest.Model{}
	rng := rand.New(rand.NewPCG(2, 61))
	for round := range 5 {
		changeAtRandom(t, w, want, rng, round)
	}
	require.NoError(t, w.Compact(t.Context(), nil, nil))
	view := openView(t, dir, nil) // its tables are not opened yet
	before := maps.Clone(want)
	for round := range 10 {
		changeAtRandom(t, w, want, rng, round)
		require.NoError(t, w.Compact(t.Context(), nil, nil))
	}
	w.settle()
	require.NotZero(t, w.Metrics().HeldFiles)
	snapshot := view.NewSnapshot()
	require.NoError(t, view.Refresh(t.Context()))
	view.settle()
	requireContents(t, before, snapshot)

	// The snapshot holds files; without it, the reader needs none that is obsolete.
	w.cleaner.LookAgain()
	w.settle()
	require.NotZero(t, w.Metrics().HeldFiles)
	require.NoError(t, snapshot.Close())
	require.NoError(t, view.Refresh(t.Context()))
	storetest.Until(func() bool { w.cleaner.LookAgain(); return w.Metrics().HeldFiles == 0 })
	requireOnlyLiveFiles(t, w)
	requireContents(t, want, view)

	// The next writer minds readers too.
	require.NoError(t, w.Set([]byte("k"), []byte("v"), nil))
	require.NoError(t, view.Refresh(t.Context()))
	want["k"] = "v"
	require.NoError(t, w.Compact(t.Context(), nil, nil))
	require.NoError(t, w.Close())
	w = openWriter(t, dir, tinyOptions())
	w.settle()
	require.NotZero(t, w.Metrics().HeldFiles)
	requireContents(t, want, view)
	require.NoError(t, view.Refresh(t.Context()))
	requireContents(t, want, view)
	require.NoError(t, view.Close())
	storetest.Until(func() bool { w.cleaner.LookAgain(); return w.Metrics().HeldFiles == 0 })
	requireOnlyLiveFiles(t, w)
}

func TestAViewThatHasLostAFileIsStale(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := openWriter(t, dir, tinyOptions())
	set(t, w, "k", "1")
	require.NoError(t, w.Compact(t.Context(), nil, nil))
	view := openView(t, dir, nil)
	for _, name := range registeredReaders(t, dir) {
		require.NoError(t, os.Remove(filepath.Join(dir, name))) // somebody cleans up
	}
	set(t, w, "k", "2")
	require.NoError(t, w.Compact(t.Context(), nil, nil))
	w.settle()

	_, err := view.Get([]byte("k"))
	require.ErrorIs(t, err, ErrStale)
	_, err = view.Has([]byte("k"))
	require.ErrorIs(t, err, ErrStale)
	it, err := view.NewIter(nil)
	if err == nil {
		require.False(t, it.First())
		err = it.Error()
		require.ErrorIs(t, it.Close(), ErrStale)
	}
	require.ErrorIs(t, err, ErrStale)
	require.NoError(t, view.Refresh(t.Context()))
	v, err := view.Get([]byte("k"))
	require.NoError(t, err)
	require.Equal(t, "2", string(v))
}

// So is a view that had opened the file, closed it again to stay within its bound, and finds
// it gone.
func TestAViewThatCannotOpenAFileAgainIsStale(t *testing.T) {
	t.Parallel()
	for _, mapped := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "store")
		w := openWriter(t, dir, &Options{TargetFileSize: 16 << 10, Compression: sstable.NoCompression})
		for i := range 2000 {
			set(t, w, fmt.Sprintf("%04d", i), strings.Repeat("v", 100))
		}
		require.NoError(t, w.Compact(t.Context(), nil, nil))
		require.Greater(t, w.Metrics().Levels[lastLevel].Files, 5)
		view := openView(t, dir, &Options{MaxOpenFiles: 4, CacheSize: -1, MemoryMap: mapped})
		read := func() (failed int) {
			for i := range 2000 {
				if _, err := view.Get(fmt.Appendf(nil, "%04d", i)); err != nil {
					require.ErrorIs(t, err, ErrStale)
					failed++
				}
			}
			return failed
		}
		require.Zero(t, read())
		for _, name := range registeredReaders(t, dir) {
			require.NoError(t, os.Remove(filepath.Join(dir, name))) // somebody cleans up
		}
		for i := range 2000 {
			set(t, w, fmt.Sprintf("%04d", i), "2")
		}
		require.NoError(t, w.Compact(t.Context(), nil, nil))
		w.settle()
		require.Equal(t, mapped, read() == 0, "what is mapped is still there")
		require.NoError(t, view.Refresh(t.Context()))
		require.Zero(t, read())
	}
}

func TestRegistrationsOfTheDeadAreRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := openWriter(t, dir, tinyOptions())
	for i, content := range []string{"", "4711\n", "siftkv reader pid=1 manifest=1 offset=0 crc=00000000\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("READER-99999-%d", i)), []byte(content), 0o600))
	}
	set(t, w, "k", "1")
	require.NoError(t, w.Flush(t.Context()))
	w.settle()
	require.Empty(t, registeredReaders(t, dir))
	require.Zero(t, w.Metrics().HeldFiles)
}

func TestARefreshThatIsBrokenOffLeavesTheView(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := openWriter(t, dir, tinyOptions())
	set(t, w, "k", "1")
	view := openView(t, dir, nil)
	set(t, w, "k", "2")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, view.Refresh(ctx), context.Canceled)
	requireContents(t, storetest.Model{"k": "1"}, view)

	// While another refresh is under way.
	<-view.follower.turn
	ctx, cancel = context.WithCancel(t.Context())
	refreshed := make(chan error)
	go func() { refreshed <- view.Refresh(ctx) }()
	cancel()
	require.ErrorIs(t, <-refreshed, context.Canceled)
	view.follower.turn <- struct{}{}

	require.NoError(t, view.Refresh(t.Context()))
	requireContents(t, storetest.Model{"k": "2"}, view)
}

func TestAViewOfAnotherStoreIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := openWriter(t, dir, nil)
	set(t, w, "k", "1")
	view := openView(t, dir, nil)
	require.NoError(t, w.Close())
	require.NoError(t, os.Rename(dir, dir+".old"))
	require.Error(t, view.Refresh(t.Context()))
	requireContents(t, storetest.Model{"k": "1"}, view)
	w = openDir(t, dir, nil)
	set(t, w, "k", "2")
	require.NoError(t, w.Close())
	require.ErrorIs(t, view.Refresh(t.Context()), ErrDirectoryMoved)
	requireContents(t, storetest.Model{"k": "1"}, view)

	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.Rename(dir+".old", dir))
	require.NoError(t, view.Refresh(t.Context()))
	for name := range readDir(t, dir) {
		require.NoError(t, os.Remove(name))
	}
	require.Error(t, view.Refresh(t.Context()))
	w = openWriter(t, dir, nil)
	set(t, w, "k", "2")
	require.ErrorIs(t, view.Refresh(t.Context()), ErrStale)
	requireContents(t, storetest.Model{"k": "1"}, view)
}

func TestAReaderThatCannotRegisterKeepsItsFilesOpen(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	w := openWriter(t, dir, tinyOptions())
	want := storetest.Model{}
	rng := rand.New(rand.NewPCG(3, 61))
	view, err := OpenReadOnly(dir, &Options{harness: harness.Harness{FS: vfstest.UnwritableFS{FS: w.fs}}})
	require.NoError(t, err)
	require.Empty(t, registeredReaders(t, dir))
	for round := range 10 {
		before := maps.Clone(want)
		changeAtRandom(t, w, want, rng, round)
		require.NoError(t, w.Compact(t.Context(), nil, nil))
		w.settle()
		requireContents(t, before, view)
		require.NoError(t, view.Refresh(t.Context()))
		requireContents(t, want, view)
	}
	require.NoError(t, view.Close())
}

// A reader sees what is whole, at every length that a log and a manifest grow to.
func TestViewsOfEveryLengthOfALog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := openWriter(t, dir, nil)
	for i := range 20 {
		set(t, w, "count", strconv.Itoa(i+1))
		set(t, w, fmt.Sprintf("key%02d", i), strings.Repeat("x", i*300))
	}
	name := manifest.Path(w.dir, manifest.FileWAL, w.commits.Log().ID())
	edits, size := manifest.Path(w.dir, manifest.FileManifest, w.manifest.Num()), w.manifest.Size()
	require.NoError(t, w.Close())
	require.NoError(t, os.Truncate(edits, size)) // a store that is being written does not say that it was closed
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(name, 0))
	view := openView(t, dir, nil)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	defer f.Close()
	rng := rand.New(rand.NewPCG(4, 61))
	last := 0
	for len(whole) > 0 {
		n := min(1+rng.IntN(200), len(whole))
		_, err := f.Write(whole[:n])
		require.NoError(t, err)
		whole = whole[n:]
		require.NoError(t, view.Refresh(t.Context()))
		n, keys := contentsUpTo(t, view)
		require.GreaterOrEqual(t, n, last)
		require.GreaterOrEqual(t, keys, n-1)
		require.LessOrEqual(t, keys, n)
		last = n
	}
	require.Equal(t, 20, last)
}

// contentsUpTo returns the count in a store, and how many other keys there are.
func contentsUpTo(t *testing.T, db Reader) (n, keys int) {
	t.Helper()
	v, err := db.Get([]byte("count"))
	if !errors.Is(err, ErrNotFound) {
		require.NoError(t, err)
		n, err = strconv.Atoi(string(v))
		require.NoError(t, err)
	}
	for i := range 20 {
		ok, err := db.Has(fmt.Appendf(nil, "key%02d", i))
		require.NoError(t, err)
		if !ok {
			break
		}
		keys++
	}
	return n, keys
}

// A listingFS changes what is listed.
type listingFS struct {
	vfs.FS
	list func(names []string) []string
}

func (l *listingFS) List(dir string) ([]string, error) {
	names, err := l.FS.List(dir)
	return l.list(names), err
}

// A log that the writer gives up again before it writes to it, just when a reader comes to
// it, does not make the reader start over with the log before: also if it has to read on
// in the manifest at that moment, since a sequence number that no write has looks like one
// that the log is ahead.
func TestAViewOutlivesALogThatIsGivenUp(t *testing.T) {
	mem := vfs.NewMem()
	w := openDir(t, "db", &Options{harness: harness.Harness{FS: mem}})
	w.commits.NextSeq() // of a commit that failed
	set(t, w, "k", "1")
	require.NoError(t, w.commits.Exclusive(context.Background(), w.commits.Log().End))
	view, err := OpenReadOnly("db", &Options{harness: harness.Harness{FS: &listingFS{mem,
		func(names []string) []string {
			require.NoError(t, w.applyEdit(func() *manifest.Edit { return &manifest.Edit{} }, func() {}))
			return append(names, manifest.FileName(manifest.FileWAL, w.commits.Log().ID()+1)) // and it is gone
		}}}})
	require.NoError(t, err)
	requireContents(t, storetest.Model{"k": "1"}, view)
	require.NoError(t, view.Refresh(t.Context()))
	require.NoError(t, view.Close())
}

// A reader sees an edit of the manifest that fails, since its bytes are there. The
// manifest that replaces the broken one does not have it: the reader goes back to the
// logs, and on.
func TestAViewOutlivesAnEditThatFails(t *testing.T) {
	mem := vfs.NewMem()
	f := &vfstest.FaultFS{FS: mem}
	w := openDir(t, "db", &Options{harness: harness.Harness{FS: f, Backoff: never}})
	set(t, w, "a", "1")
	view, err := OpenReadOnly("db", &Options{harness: harness.Harness{FS: mem}})
	require.NoError(t, err)
	syncs := 0
	f.Set(func(c vfstest.Call) (int, error) {
		if c.Op == "sync" {
			if syncs++; syncs == 2 { // of the table, of the manifest
				return 0, errDisk
			}
		}
		return 0, nil
	})
	require.ErrorContains(t, w.Flush(t.Context()), "writing the manifest failed")
	requireRefreshed := func() {
		t.Helper()
		require.NoError(t, view.Refresh(t.Context()))
		requireContents(t, storetest.Model{"a": "1"}, view)
	}
	requireRefreshed()
	require.NoError(t, replaceManifest(w))
	requireRefreshed()
	require.NoError(t, w.resume(true))
	requireRefreshed()
	require.NoError(t, view.Close())
}

package followers

import (
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
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

func TestAViewIsWhatTheStoreWasUntilItIsRefreshed(t *testing.T) {
	t.Parallel()
	t.Cleanup(storetest.LeakCheck())
	dir := filepath.Join(t.TempDir(), "store")
	_, err := kv.OpenReadOnly(dir, nil)
	require.ErrorIs(t, err, kv.ErrNotExist)
	_, err = kv.OpenReadOnly(dir, &kv.Options{InMemory: true})
	require.ErrorIs(t, err, kv.ErrInvalidOptions)

	w := stores.OpenWriter(t, dir, stores.TinyOptions())
	require.NoError(t, w.Refresh(t.Context()), "a writer is never behind")
	view := stores.OpenView(t, dir, nil)
	storetest.RequireContents(t, storetest.Model{}, view)
	require.Len(t, storetest.RegisteredReaders(t, dir), 1)

	want := storetest.Model{}
	rng := rand.New(rand.NewPCG(1, 61))
	for round := range 40 {
		before := maps.Clone(want)
		snapshot := view.NewSnapshot()
		it, err := view.NewIter(nil)
		require.NoError(t, err)
		stores.ChangeAtRandom(t, w, want, rng, round)
		storetest.RequireContents(t, before, view)
		require.NoError(t, view.Refresh(t.Context()))
		storetest.RequireContents(t, want, view)
		storetest.RequireContents(t, before, snapshot)
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
		require.ErrorIs(t, err, kv.ErrClosed)
	}
	k := []byte("k")
	for _, err := range []error{view.Set(k, k, nil), view.Flush(t.Context()), view.Compact(t.Context(), nil, nil),
		view.DeleteRange(nil, nil, nil)} {
		require.ErrorIs(t, err, kv.ErrReadOnly)
	}
	require.NoError(t, view.Close())
	require.ErrorIs(t, view.Refresh(t.Context()), kv.ErrClosed)
	require.Empty(t, storetest.RegisteredReaders(t, dir))
}

func requireIterates(t *testing.T, want storetest.Model, it *kv.Iterator) {
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

// lookAgain has a store look at once for files that no reader needs any more.
func lookAgain(t *testing.T, db *kv.DB) {
	t.Helper()
	f, release, err := harness.FilesOf(db)
	require.NoError(t, err)
	release()
	f.Cleaner.LookAgain()
}

func TestFilesThatAReaderNeedsAreHeldUntilItRefreshes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	w := stores.OpenWriter(t, dir, stores.TinyOptions())
	want := storetest.Model{}
	rng := rand.New(rand.NewPCG(2, 61))
	for round := range 5 {
		stores.ChangeAtRandom(t, w, want, rng, round)
	}
	require.NoError(t, w.Compact(t.Context(), nil, nil))
	view := stores.OpenView(t, dir, nil) // its tables are not opened yet
	before := maps.Clone(want)
	for round := range 10 {
		stores.ChangeAtRandom(t, w, want, rng, round)
		require.NoError(t, w.Compact(t.Context(), nil, nil))
	}
	harness.Settle(w)
	require.NotZero(t, w.Metrics().HeldFiles)
	snapshot := view.NewSnapshot()
	require.NoError(t, view.Refresh(t.Context()))
	harness.Settle(view)
	storetest.RequireContents(t, before, snapshot)

	// The snapshot holds files; without it, the reader needs none that is obsolete.
	lookAgain(t, w)
	harness.Settle(w)
	require.NotZero(t, w.Metrics().HeldFiles)
	require.NoError(t, snapshot.Close())
	require.NoError(t, view.Refresh(t.Context()))
	storetest.Until(func() bool { lookAgain(t, w); return w.Metrics().HeldFiles == 0 })
	storetest.RequireOnlyLiveFiles(t, w)
	storetest.RequireContents(t, want, view)

	// The next writer minds readers too.
	require.NoError(t, w.Set([]byte("k"), []byte("v"), nil))
	require.NoError(t, view.Refresh(t.Context()))
	want["k"] = "v"
	require.NoError(t, w.Compact(t.Context(), nil, nil))
	require.NoError(t, w.Close())
	w = stores.OpenWriter(t, dir, stores.TinyOptions())
	harness.Settle(w)
	require.NotZero(t, w.Metrics().HeldFiles)
	storetest.RequireContents(t, want, view)
	require.NoError(t, view.Refresh(t.Context()))
	storetest.RequireContents(t, want, view)
	require.NoError(t, view.Close())
	storetest.Until(func() bool { lookAgain(t, w); return w.Metrics().HeldFiles == 0 })
	storetest.RequireOnlyLiveFiles(t, w)
}

func TestAViewThatHasLostAFileIsStale(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := stores.OpenWriter(t, dir, stores.TinyOptions())
	stores.Set(t, w, "k", "1")
	require.NoError(t, w.Compact(t.Context(), nil, nil))
	view := stores.OpenView(t, dir, nil)
	for _, name := range storetest.RegisteredReaders(t, dir) {
		require.NoError(t, os.Remove(filepath.Join(dir, name))) // it is cleaned up
	}
	stores.Set(t, w, "k", "2")
	require.NoError(t, w.Compact(t.Context(), nil, nil))
	harness.Settle(w)

	_, err := view.Get([]byte("k"))
	require.ErrorIs(t, err, kv.ErrStale)
	_, err = view.Has([]byte("k"))
	require.ErrorIs(t, err, kv.ErrStale)
	it, err := view.NewIter(nil)
	if err == nil {
		require.False(t, it.First())
		err = it.Error()
		require.ErrorIs(t, it.Close(), kv.ErrStale)
	}
	require.ErrorIs(t, err, kv.ErrStale)
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
		w := stores.OpenWriter(t, dir, &kv.Options{TargetFileSize: 16 << 10, Compression: sstable.NoCompression})
		for i := range 2000 {
			stores.Set(t, w, fmt.Sprintf("%04d", i), strings.Repeat("v", 100))
		}
		require.NoError(t, w.Compact(t.Context(), nil, nil))
		require.Greater(t, w.Metrics().Levels[kv.NumLevels-1].Files, 5)
		view := stores.OpenView(t, dir, &kv.Options{MaxOpenFiles: 4, CacheSize: -1, MemoryMap: mapped})
		read := func() (failed int) {
			for i := range 2000 {
				if _, err := view.Get(fmt.Appendf(nil, "%04d", i)); err != nil {
					require.ErrorIs(t, err, kv.ErrStale)
					failed++
				}
			}
			return failed
		}
		require.Zero(t, read())
		for _, name := range storetest.RegisteredReaders(t, dir) {
			require.NoError(t, os.Remove(filepath.Join(dir, name))) // it is cleaned up
		}
		for i := range 2000 {
			stores.Set(t, w, fmt.Sprintf("%04d", i), "2")
		}
		require.NoError(t, w.Compact(t.Context(), nil, nil))
		harness.Settle(w)
		require.Equal(t, mapped, read() == 0, "what is mapped is still there")
		require.NoError(t, view.Refresh(t.Context()))
		require.Zero(t, read())
	}
}

func TestRegistrationsOfTheDeadAreRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := stores.OpenWriter(t, dir, stores.TinyOptions())
	for i, content := range []string{"", "4711\n", "siftkv reader pid=1 manifest=1 offset=0 crc=00000000\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("READER-99999-%d", i)), []byte(content), 0o600))
	}
	stores.Set(t, w, "k", "1")
	require.NoError(t, w.Flush(t.Context()))
	harness.Settle(w)
	require.Empty(t, storetest.RegisteredReaders(t, dir))
	require.Zero(t, w.Metrics().HeldFiles)
}

func TestAViewOfAnotherStoreIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := stores.OpenWriter(t, dir, nil)
	stores.Set(t, w, "k", "1")
	view := stores.OpenView(t, dir, nil)
	require.NoError(t, w.Close())
	require.NoError(t, os.Rename(dir, dir+".old"))
	require.Error(t, view.Refresh(t.Context()))
	storetest.RequireContents(t, storetest.Model{"k": "1"}, view)
	w = stores.OpenDir(t, dir, nil)
	stores.Set(t, w, "k", "2")
	require.NoError(t, w.Close())
	require.ErrorIs(t, view.Refresh(t.Context()), kv.ErrDirectoryMoved)
	storetest.RequireContents(t, storetest.Model{"k": "1"}, view)

	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.Rename(dir+".old", dir))
	require.NoError(t, view.Refresh(t.Context()))
	for name := range storetest.ReadDir(t, dir) {
		require.NoError(t, os.Remove(name))
	}
	require.Error(t, view.Refresh(t.Context()))
	w = stores.OpenWriter(t, dir, nil)
	stores.Set(t, w, "k", "2")
	require.ErrorIs(t, view.Refresh(t.Context()), kv.ErrStale)
	storetest.RequireContents(t, storetest.Model{"k": "1"}, view)
}

func TestAReaderThatCannotRegisterKeepsItsFilesOpen(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	w := stores.OpenWriter(t, dir, stores.TinyOptions())
	want := storetest.Model{}
	rng := rand.New(rand.NewPCG(3, 61))
	view, err := kv.OpenReadOnly(dir, stores.With(harness.Harness{FS: unwritableFS{FS: vfs.OS}}, &kv.Options{}))
	require.NoError(t, err)
	require.Empty(t, storetest.RegisteredReaders(t, dir))
	for round := range 10 {
		before := maps.Clone(want)
		stores.ChangeAtRandom(t, w, want, rng, round)
		require.NoError(t, w.Compact(t.Context(), nil, nil))
		harness.Settle(w)
		storetest.RequireContents(t, before, view)
		require.NoError(t, view.Refresh(t.Context()))
		storetest.RequireContents(t, want, view)
	}
	require.NoError(t, view.Close())
}

// A reader sees what is whole, at every length that a log and a manifest grow to.
func TestViewsOfEveryLengthOfALog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := stores.OpenWriter(t, dir, nil)
	for i := range 20 {
		stores.Set(t, w, "count", strconv.Itoa(i+1))
		stores.Set(t, w, fmt.Sprintf("key%02d", i), strings.Repeat("x", i*300))
	}
	name := storetest.NewestFile(t, vfs.OS, dir, manifest.FileWAL)
	edits := storetest.NewestFile(t, vfs.OS, dir, manifest.FileManifest)
	written, err := os.Stat(edits)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, os.Truncate(edits,
		written.Size())) // a store that is being written does not say that it was closed
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(name, 0))
	view := stores.OpenView(t, dir, nil)
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
func contentsUpTo(t *testing.T, db kv.Reader) (n, keys int) {
	t.Helper()
	v, err := db.Get([]byte("count"))
	if !errors.Is(err, kv.ErrNotFound) {
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

package remote

import (
	"errors"
	"io/fs"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/objstore"
)

// writerFS returns the FS of a writer that has published a list of files.
func writerFS(t *testing.T, store objstore.Store, keep func() bool) *FS {
	t.Helper()
	f := testFS(store)
	f.o.KeepLogs = keep
	lock, err := f.Lock(f.join(manifest.LockName), vfs.Exclusive)
	require.NoError(t, err)
	l, err := manifest.Create(f, objectdir.Root, 1+f.asWriter().author.Epoch, &manifest.Edit{StoreID: 1})
	require.NoError(t, err)
	t.Cleanup(func() { _ = errors.Join(l.Close(), lock.Close(), f.Close()) })
	return f
}

// Files of slots are as durable as those of a directory, at one request for each change, and a writer that was fenced
// changes none.
func TestFilesOfSlotsAreInTheListOfFiles(t *testing.T) {
	var counters objstore.Counters
	store := objstore.WithCounters(objstore.NewMem(), &counters)
	puts := func() int64 { return counters.Snapshot()[objstore.PutIfAbsent].Requests }
	f := writerFS(t, store, nil)
	require.ErrorIs(t, f.Remove(f.join("SLOT-none")), fs.ErrNotExist)
	before := puts()
	require.NoError(t, f.SyncDir(objectdir.Root))
	require.Equal(t, before, puts(), "nothing was changed")
	for i, name := range []string{"SLOT-a", "SLOT-b", "SLOT-a"} {
		require.NoError(t, vfs.ReplaceFile(f, f.join(name), []byte{byte('0' + i)}))
		require.NoError(t, f.SyncDir(objectdir.Root))
		require.Equal(t, before+int64(i)+1, puts())
	}
	require.NoError(t, errors.Join(f.Remove(f.join("SLOT-b")), f.SyncDir(objectdir.Root)))
	reader := testFS(store)
	read := func(want string) {
		t.Helper()
		names, err := reader.List(objectdir.Root)
		require.NoError(t, err)
		require.Contains(t, names, "SLOT-a")
		require.NotContains(t, names, "SLOT-b")
		text, err := vfs.ReadSmallFile(reader, reader.join("SLOT-a"), math.MaxInt64)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	read("2")
	next := writerFS(t, store, nil)
	require.NoError(t, vfs.ReplaceFile(next, next.join("SLOT-a"), []byte("3")))
	require.ErrorIs(t, vfs.ReplaceFile(f, f.join("SLOT-a"), []byte("4")), base.ErrFenced)
	require.ErrorIs(t, f.SyncDir(objectdir.Root), base.ErrFenced, "it is not forgotten")
	reader.LookAgain()
	require.NoError(t, reader.refresh())
	require.NoError(t, reader.refresh())
	read("3")
	require.NoError(t, reader.Close())
}

// A writer reads what it has written to a log, if it was to keep that from the first record on; else it gets an error.
func TestAWriterReadsTheLogsThatItKeeps(t *testing.T) {
	keep := false
	f := writerFS(t, objstore.NewMem(), func() bool { return keep })
	log := func(num uint64) (w vfs.WriteFile, name string) {
		name = f.path(manifest.FileWAL, num)
		w, err := f.Create(name)
		require.NoError(t, err)
		_, err = w.Write(make([]byte, 32)) // a header
		require.NoError(t, err)
		return w, name
	}
	read := func(name string) int {
		data, err := vfs.ReadSmallFile(f, name, math.MaxInt64)
		require.NoError(t, err)
		return len(data)
	}
	first, name := log(11)
	require.Equal(t, 32, read(name))
	keep = true
	_, err := first.Write(make([]byte, 100))
	require.NoError(t, err)
	require.Equal(t, 132, read(name))
	keep = false
	_, err = first.Write(make([]byte, 100))
	require.NoError(t, err)
	keep = true
	_, err = first.Write(make([]byte, 100))
	require.NoError(t, err)
	_, err = f.Open(name)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.NoError(t, errors.Join(first.Close(), f.Remove(name)))
	_, err = f.Open(name)
	require.ErrorIs(t, err, fs.ErrNotExist)
	second, name := log(12)
	r, err := f.Open(name)
	require.NoError(t, err)
	require.NoError(t, errors.Join(second.Sync(), second.Close(), f.Remove(name)))
	_, err = r.ReadAt(make([]byte, 32), 0)
	require.NoError(t, errors.Join(err, r.Close()), "a file that is open outlives its name")
}

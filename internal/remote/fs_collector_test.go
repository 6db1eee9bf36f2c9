package remote

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// A sorted file that could not be deleted is deleted with the next one.
func TestWhatCouldNotBeDeletedIsDeletedLater(t *testing.T) {
	refused := make(chan struct{}, 1)
	store := objstore.NewMem()
	faults := objstoretest.NewFaults(store, 1)
	faults.Inject(func(c objstoretest.Call) objstoretest.Fault {
		if c.Kind != objstore.Delete {
			return objstoretest.Fault{}
		}
		select {
		case refused <- struct{}{}:
		default:
		}
		return objstoretest.Fault{Outcome: objstoretest.NotPerformed, Err: errors.New("refused")}
	})
	f := testFS(faults)
	lock, err := f.Lock(f.join(manifest.LockName), vfs.Exclusive)
	require.NoError(t, err)
	first := sortedFileKey(f, 1)
	giveUpFile(t, f, 1)
	<-refused
	faults.Inject(func(objstoretest.Call) objstoretest.Fault { return objstoretest.Fault{} })
	// One alone may come before what was refused is handed in again.
	giveUpFilesUntilGone(t, f, store, first, 2)
	require.NoError(t, lock.Close())
	require.NoError(t, f.Close())
}

// sortedFileKey returns the key of a sorted file of a writer.
func sortedFileKey(f *FS, num uint64) string {
	return filelist.File{WriterID: f.asWriter().author, Kind: manifest.FileTable}.Key(num)
}

// giveUpFile makes a sorted file and removes it.
func giveUpFile(t *testing.T, f *FS, num uint64) {
	t.Helper()
	name := f.join(manifest.FileName(manifest.FileTable, num))
	w, err := f.Create(name)
	require.NoError(t, err)
	require.NoError(t, errors.Join(w.Sync(), w.Close()))
	require.NoError(t, f.Remove(name))
}

// giveUpFilesUntilGone gives up files, with numbers from one on, until an object is not there any more. It leaves the
// collector time for each, for up to 5 minutes: a busy machine may need minutes for all of them.
func giveUpFilesUntilGone(t *testing.T, f *FS, store objstore.Store, key string, num uint64) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); num++ {
		giveUpFile(t, f, num)
		if _, err := store.GetRange(t.Context(), key, 0, make([]byte, 1)); errors.Is(err, objstore.ErrNotExist) {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%s is still there", key)
}

// A writer that was fenced may put a file there when the one after has looked for such files.
func TestWhatComesAfterTheSearchForOrphansIsFoundLater(t *testing.T) {
	store := objstore.NewMem()
	fenced, f := testFS(store), testFS(store)
	was, err := fenced.Lock(fenced.join(manifest.LockName), vfs.Exclusive)
	require.NoError(t, err)
	is, err := f.Lock(f.join(manifest.LockName), vfs.Exclusive)
	require.NoError(t, err)
	giveUpFilesUntilGone(t, f, store, sortedFileKey(f, 1), 1)
	w, err := fenced.Create(fenced.join(manifest.FileName(manifest.FileTable, 7)))
	require.NoError(t, err)
	_, err = w.Write([]byte("late"))
	require.NoError(t, err)
	require.NoError(t, errors.Join(w.Sync(), w.Close()))
	giveUpFilesUntilGone(t, f, store, sortedFileKey(fenced, 7), 1_000_000)
	require.NoError(t, is.Close())
	_ = was.Close() // it is fenced
	require.NoError(t, errors.Join(f.Close(), fenced.Close()))
}

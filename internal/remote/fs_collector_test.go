package remote

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
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
	remove := func(num uint64) {
		name := f.join(manifest.FileName(manifest.FileTable, num))
		w, err := f.Create(name)
		require.NoError(t, err)
		require.NoError(t, errors.Join(w.Sync(), w.Close()))
		require.NoError(t, f.Remove(name))
	}
	first := f.asWriter().author.object(1)
	remove(1)
	<-refused
	faults.Inject(func(objstoretest.Call) objstoretest.Fault { return objstoretest.Fault{} })
	for num := uint64(2); ; num++ { // one alone may come before what was refused is handed in again
		remove(num)
		there := map[string]bool{}
		for o, err := range store.List(t.Context(), "sst/", "") {
			require.NoError(t, err)
			there[o.Key] = true
		}
		if !there[first] {
			break
		}
	}
	require.NoError(t, lock.Close())
	require.NoError(t, f.Close())
}

package remote

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/remote/branch"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// hanging is a store of which removals get no reply.
type hanging struct {
	objstore.Store
	asked chan struct{}
}

func (h *hanging) Delete(ctx context.Context, _ string) error {
	select {
	case h.asked <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return fmt.Errorf("%w: %w", objstore.ErrUnknown, ctx.Err())
}

func testFS(store objstore.Store) *FS {
	return NewFS(FSOptions{Options: branch.Options{Objects: store}, Params: objectdir.Params{Local: vfs.NewMem(),
		Log: slog.New(slog.DiscardHandler)},
		Logs: LogOptions{Patience: 50 * time.Millisecond}, Tables: TableOptions{ReadTimeout: time.Hour}})
}

// TestCloseEndsRemovals closes a store of which sorted files are being removed, while the object store does not answer.
func TestCloseEndsRemovals(t *testing.T) {
	store := &hanging{Store: objstore.NewMem(), asked: make(chan struct{}, 1)}
	f := testFS(store)
	lock, err := f.Lock(f.join(manifest.LockName), vfs.Exclusive)
	require.NoError(t, err)
	for num := range uint64(3) {
		name := filepath.Join(objectdir.Root, manifest.FileName(manifest.FileTable, num+1))
		w, err := f.Create(name)
		require.NoError(t, err)
		_, err = w.Write([]byte("table"))
		require.NoError(t, err)
		require.NoError(t, w.Sync())
		require.NoError(t, w.Close())
		require.NoError(t, f.Remove(name))
	}
	<-store.asked
	require.NoError(t, lock.Close())
	require.NoError(t, f.Close())
}

// TestALockIsPatientNoLongerThanItsLogs takes over a store in an object store that has too much to do for ever.
func TestALockIsPatientNoLongerThanItsLogs(t *testing.T) {
	faults := objstoretest.NewFaults(objstore.NewMem(), 1)
	faults.Inject(func(c objstoretest.Call) objstoretest.Fault {
		if c.Kind == objstore.PutIfAbsent {
			return objstoretest.Fault{Outcome: objstoretest.NotPerformed, Err: objstore.ErrThrottled}
		}
		return objstoretest.Fault{}
	})
	f := testFS(faults)
	_, err := f.Lock(f.join(manifest.LockName), vfs.Exclusive)
	require.ErrorIs(t, err, objstore.ErrThrottled)
	require.NoError(t, f.Close())
}

package remote

import (
	"errors"
	"strings"
	"sync/atomic"
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

// A branch's collector has looked at the checkpoints, and stalls. Then a checkpoint of the branch is made, which has a
// file of the parent, and the branch gives that file up, so long ago that the grace is over when the collector goes on.
// The pin stays for the checkpoint.
func TestAPinStaysForACheckpointThatTheCollectorHasNotSeen(t *testing.T) {
	mem := objstore.NewMem()
	startModelStore(t, mem)
	require.NoError(t, branch.Clone(t.Context(), branchOptions(mem, "").Options, "b"))
	faults := objstoretest.NewFaults(mem, 1)
	o := branchOptions(faults, "b")
	o.Grace = 0
	f := NewFS(o)
	lock, err := f.Lock(f.join(manifest.LockName), vfs.Exclusive)
	require.NoError(t, err)
	of := func(num uint64) []manifest.AddedTable { return []manifest.AddedTable{{Table: modelTable(num)}} }
	snapshot := &manifest.Edit{StoreID: 1, LogNum: 1, Added: of(1)}
	l, err := manifest.Create(f, objectdir.Root, 3, snapshot)
	require.NoError(t, err)
	remove := func(num uint64) {
		require.NoError(t, l.Append(&manifest.Edit{Deleted: []manifest.DeletedTable{{Num: num}}}))
		require.NoError(t, f.Remove(f.path(manifest.FileTable, num)))
	}
	var stalled, looked atomic.Bool
	done := make(chan struct{})
	faults.Inject(func(c objstoretest.Call) objstoretest.Fault {
		switch {
		case c.Kind == objstore.Delete && strings.HasSuffix(c.Key, ".sst") && stalled.CompareAndSwap(false, true):
			_, err := branch.CreateCheckpoint(t.Context(), branchOptions(mem, "b").Options, "c")
			require.NoError(t, err)
			remove(1) // it waits until this collection has ended, as one runs at a time
			looked.Store(true)
		case c.Kind == objstore.List && c.Key == "checkpoint/" && looked.CompareAndSwap(true, false):
			close(done) // the next collector begins
		}
		return objstoretest.Fault{}
	})
	require.NoError(t, writeModelTable(f, 4))
	require.NoError(t, l.Append(&manifest.Edit{Added: of(4)}))
	remove(4)
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("no other collector begins")
	}
	require.NoError(t, errors.Join(l.Close(), lock.Close(), f.Close()))
	found, err := branch.NewSet(o.Options).Checkpoints(t.Context(), "checkpoint/")
	require.NoError(t, err)
	require.Len(t, found, 2, "the checkpoint, and the pin")
}

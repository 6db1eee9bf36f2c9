package remote

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/remote/branch"
	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// A job opens the store of a branch, replaces the file of the job before by one of its own, and closes the store.
type job struct {
	f    *FS
	lock interface{ Close() error }
}

func beginJob(t *testing.T, o FSOptions) *job {
	t.Helper()
	f := NewFS(o)
	_, err := f.List(objectdir.Root)
	require.NoError(t, err)
	lock, err := f.Lock(f.join(manifest.LockName), vfs.Exclusive)
	require.NoError(t, err)
	return &job{f, lock}
}

// replace gives up all files, makes one with a number, and publishes that.
func (j *job) replace(t *testing.T, num uint64) {
	t.Helper()
	f := j.f
	w, err := f.Create(f.path(manifest.FileTable, num))
	require.NoError(t, err)
	_, err = w.Write(make([]byte, 100))
	require.NoError(t, err)
	require.NoError(t, errors.Join(w.Sync(), w.Close()))
	names, err := f.List(objectdir.Root)
	require.NoError(t, err)
	l, err := manifest.Create(f, objectdir.Root, 1000+num, &manifest.Edit{StoreID: 1,
		Added: []manifest.AddedTable{{Table: modelTable(num)}}})
	require.NoError(t, err)
	require.NoError(t, l.Close())
	for _, name := range names {
		if kind, n := manifest.ParseFileName(name); kind == manifest.FileTable && n != num {
			require.NoError(t, f.Remove(f.join(name)))
		}
	}
	require.NoError(t, f.asWriter().publish(f.join(manifest.CurrentName)))
}

func (j *job) end(t *testing.T) {
	t.Helper()
	require.NoError(t, errors.Join(j.lock.Close(), j.f.Close()))
}

// count returns the number of objects whose keys begin with prefix, and their bytes.
func count(t *testing.T, store objstore.Store, prefix string) (n int) {
	for _, err := range store.List(context.Background(), prefix, "") {
		require.NoError(t, err)
		n++
	}
	return n
}

func jobOptions(store objstore.Store) FSOptions {
	o := branchOptions(store, "")
	o.Grace = 10 * time.Minute
	return o
}

// Writers that live for less than the grace delete what those before them have left behind, when it is old enough by
// the store's clock, and nothing that a list or a checkpoint has.
func TestShortJobsDeleteWhatEarlierOnesLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := objstore.NewMem()
		o := jobOptions(store)
		for i := range uint64(30) {
			j := beginJob(t, o)
			j.replace(t, 10+i)
			j.end(t)
			if i == 4 {
				_, err := branch.CreateCheckpoint(t.Context(), o.Options, "kept")
				require.NoError(t, err)
			}
			time.Sleep(3 * time.Minute)
		}
		require.LessOrEqual(t, count(t, store, "sst/"), 1+1+6, "of half an hour, the grace has five")
		require.LessOrEqual(t, count(t, store, "entry/"), 30+3*8, "with the fences")
		_, err := store.GetRange(t.Context(), fileOf(t, store, 14), 0, make([]byte, 1))
		require.NoError(t, err, "a checkpoint has it")

		// Without a writer, and with one that goes on.
		time.Sleep(time.Hour)
		writer := beginJob(t, o)
		got, err := branch.Collect(t.Context(), o.Options)
		require.NoError(t, err)
		require.Positive(t, got.Files)
		require.EqualValues(t, 100*got.Files, got.Bytes)
		require.Positive(t, got.Entries)
		require.Equal(t, 2, count(t, store, "sst/"))
		require.Zero(t, count(t, store, "check/"))
		got, err = branch.Collect(t.Context(), o.Options)
		require.NoError(t, err)
		require.Equal(t, branch.Collected{}, got)
		writer.replace(t, 100)
		writer.end(t)
	})
}

// fileOf returns the key of the sorted file with a number.
func fileOf(t *testing.T, store objstore.Store, num uint64) string {
	for o, err := range store.List(t.Context(), "sst/", "") {
		require.NoError(t, err)
		if n, _, ok := filelist.BranchPrefix("").ParseFile(o.Key); ok && n == num {
			return o.Key
		}
	}
	t.Fatalf("there is no file %d", num)
	return ""
}

// What cannot be deleted is counted, and deleted by a later writer. Nobody asks for it again and again.
func TestDeletionsThatFailAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := objstore.NewMem()
		faults := objstoretest.NewFaults(store, 1)
		o := jobOptions(faults)
		for i := range uint64(4) {
			j := beginJob(t, o)
			j.replace(t, 10+i)
			j.end(t)
		}
		time.Sleep(time.Hour)
		faults.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
			if c.Kind == objstore.Delete {
				f = objstoretest.Fault{Outcome: objstoretest.NotPerformed, Err: errors.New("refused")}
			}
			return f
		})
		j := beginJob(t, o)
		j.replace(t, 20)
		time.Sleep(time.Hour)
		synctest.Wait()
		files, bytes, failed := j.f.writer.collector.garbage()
		require.Positive(t, failed)
		require.Positive(t, files)
		require.EqualValues(t, 100*files, bytes)
		calls := faults.Calls()
		time.Sleep(time.Hour)
		require.Equal(t, calls, faults.Calls())
		j.end(t)
		faults.Inject(func(objstoretest.Call) objstoretest.Fault { return objstoretest.Fault{} })
		j = beginJob(t, o)
		j.replace(t, 21)
		j.end(t)
		require.LessOrEqual(t, count(t, store, "sst/"), 2)
	})
}

// One removal that takes long has one goroutine, however short the grace is.
func TestACollectorThatIsSlowCollectsOnceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := objstoretest.NewFaults(objstore.NewMem(), 1)
		o := jobOptions(faults)
		o.Grace = time.Second
		j := beginJob(t, o)
		faults.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
			if c.Kind == objstore.Delete {
				f.Delay = time.Hour
			}
			return f
		})
		c := &j.f.asWriter().collector
		for i := range uint64(20) {
			j.replace(t, 10+i)
			time.Sleep(2 * time.Second)
			c.mu.Lock()
			require.Equal(t, i > 0, c.armed)
			c.mu.Unlock()
		}
		files, _, _ := j.f.writer.collector.garbage()
		require.Equal(t, 18, files, "the first is being removed")
		j.end(t)
	})
}

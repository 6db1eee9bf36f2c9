package kv

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// closedStore makes a store with two logs that was closed cleanly.
func closedStore(t *testing.T) (dir string, logs []string) {
	t.Helper()
	dir = t.TempDir()
	db, err := Open(dir, nil)
	require.NoError(t, err)
	for i := range 50 {
		if i == 25 { // a second log, without a flush of the first
			require.NoError(t, exclusive(db, func() error {
				_, err := db.rotateLog(nil)
				return err
			}))
		}
		require.NoError(t, db.Set(fmt.Appendf(nil, "k%02d", i), []byte("v"), Sync))
	}
	require.NoError(t, db.Close())
	logs, err = filepath.Glob(filepath.Join(dir, "*.wal"))
	require.NoError(t, err)
	require.Len(t, logs, 2)
	slices.Sort(logs)
	return dir, logs
}

// TestAClosedStoreMissesNothing takes writes away from a store that was closed in good
// order: no crash explains that, however clean the cut.
func TestAClosedStoreMissesNothing(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(logs []string) error{
		"the last log is missing":    func(logs []string) error { return os.Remove(logs[1]) },
		"the first log is missing":   func(logs []string) error { return os.Remove(logs[0]) },
		"both logs are missing":      func(logs []string) error { return os.Remove(logs[0]) },
		"the last log is empty":      func(logs []string) error { return os.Truncate(logs[1], 0) },
		"the last log has a header":  func(logs []string) error { return os.Truncate(logs[1], wal.HeaderSize) },
		"the last log ends too soon": func(logs []string) error { return cutLog(logs[1], 5) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, logs := closedStore(t)
			require.NoError(t, damage(logs))
			if name == "both logs are missing" {
				require.NoError(t, os.Remove(logs[1]))
			}
			for _, mode := range []RecoveryMode{PointInTime, TolerateTornTail, Absolute} {
				_, err := Open(dir, &Options{RecoveryMode: mode})
				require.ErrorIs(t, err, ErrCorruption, "%v", mode)
				require.ErrorContains(t, err, "siftkv verify ", "%v", mode)
			}
			_, err := OpenReadOnly(dir, nil)
			require.ErrorIs(t, err, ErrCorruption, "a view of it")
			var lost []DroppedInfo
			db, err := Open(dir, &Options{RecoveryMode: SkipCorrupt,
				Events: Events{RecoveryDropped: func(l DroppedInfo) { lost = append(lost, l) }}})
			require.NoError(t, err)
			require.NotEmpty(t, lost)
			require.NoError(t, db.Close())
			db, err = Open(dir, nil)
			require.NoError(t, err, "the loss was accepted once")
			require.NoError(t, db.Close())
		})
	}
}

// cutLog leaves n records of a log, whole.
func cutLog(name string, n int) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, num := manifest.ParseFileName(filepath.Base(name))
	r := wal.NewReader(logBytes{f}, name, num)
	for range n {
		if _, err := r.Next(); err != nil {
			return err
		}
	}
	return os.Truncate(name, r.End())
}

// logBytes is a file as a log's reader wants it.
type logBytes struct{ *os.File }

func (f logBytes) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// TestAManifestCutBackIsFoundOut cuts a manifest right after an edit, past which logs were
// removed: what is left describes an older store, whose writes are gone.
func TestAManifestCutBackIsFoundOut(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, nil)
	require.NoError(t, err)
	var ends []int64
	for i := range 3 {
		ends = append(ends, db.manifest.Size())
		require.NoError(t, db.Set(fmt.Appendf(nil, "k%02d", i), []byte("v"), Sync))
		require.NoError(t, db.Flush(t.Context()))
	}
	name := manifest.Path(db.dir, manifest.FileManifest, db.manifest.Num())
	db.settle()
	require.NoError(t, db.Close())
	for i := len(ends) - 1; i > 0; i-- {
		require.NoError(t, os.Truncate(name, ends[i]))
		_, err := Open(dir, nil)
		require.ErrorIs(t, err, ErrCorruption, "%d flushes left", i)
		require.ErrorContains(t, err, ".wal: the log is missing")
	}
}

// TestAStoreThatGotEmptyOpens closes a store whose tables are all gone.
func TestAStoreThatGotEmptyOpens(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		db, err := Open(dir, nil)
		require.NoError(t, err)
		before := db.seq()
		require.NoError(t, db.Set([]byte("k"), nil, Sync))
		require.Greater(t, db.seq(), before)
		require.NoError(t, db.Flush(t.Context()))
		require.NoError(t, db.Delete([]byte("k"), Sync))
		require.NoError(t, db.Flush(t.Context()))
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		db.installed().All(func(int, *version.Table) { require.Fail(t, "a table is left") })
		last := db.seq()
		require.NoError(t, db.Close())
		ro, err := Open(dir, &Options{ReadOnly: true})
		require.NoError(t, err)
		require.Equal(t, last, ro.seq())
		require.NoError(t, ro.Close())
	}
}

func TestAfterCloseEveryMethodSaysSo(t *testing.T) {
	db, err := Open("db", &Options{InMemory: true})
	require.NoError(t, err)
	set(t, db, "a", "1")
	snapshot, filled := db.NewSnapshot(), db.NewBatch()
	require.NoError(t, filled.Set([]byte("b"), nil))
	require.ErrorIs(t, db.Close(), ErrSnapshotsOpen)
	require.ErrorIs(t, db.Close(), ErrSnapshotsOpen, "a second Close returns what the first did")

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
	_, readerErr := db.GetReader(k)
	_, snapReaderErr := snapshot.GetReader(k)
	for name, err := range map[string]error{
		"Get": getErr, "AppendGet": appendErr, "Has": hasErr, "NewIter": iterErr, "Explain": explainErr,
		"Snapshot.Get": snapGetErr, "Snapshot.Has": snapHasErr, "Snapshot.NewIter": snapIterErr,
		"NewSnapshot": laterErr, "Begin": beginErr, "GetReader": readerErr, "Snapshot.GetReader": snapReaderErr,
		"View": db.View(func(*Tx) error { return nil }), "Update": db.Update(func(*Tx) error { return nil }),
		"Set": db.Set(k, nil, nil), "Delete": db.Delete(k, nil), "DeleteRange": db.DeleteRange(nil, nil, Async),
		"Commit": filled.Commit(nil), "Commit of nothing": db.NewBatch().Commit(nil),
		"Flush": db.Flush(t.Context()), "Compact": db.Compact(t.Context(), nil, nil),
		"Compact of nothing": db.Compact(t.Context(), []byte("b"), k), "Refresh": db.Refresh(t.Context()),
		"Checkpoint": db.Checkpoint(t.Context(), "elsewhere"), "verify": db.verify(io.Discard),
	} {
		require.ErrorIs(t, err, ErrClosed, name)
	}
	require.NoError(t, snapshot.Close())
	require.NoError(t, snapshot.Close())
	require.NoError(t, later.Close())
	require.EqualValues(t, 1, db.Metrics().Writes, "counters outlive the store")
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
	go func() { _ = db.Flush(t.Context()) }() // returns when the store closes, at the latest
	<-inEvent
	for db.Metrics().Memtables < 2 { // the next memtable is full, and waits
		set(t, db, "b", strings.Repeat("x", 20<<10))
	}
	flushed, closed := make(chan error), make(chan error)
	go func() { flushed <- db.Flush(t.Context()) }()
	storetest.Until(func() bool {
		leading, _ := db.commits.Queue()
		return leading // it holds up the pipeline, and waits
	})
	go func() { closed <- db.Close() }()
	storetest.Until(func() bool {
		db.mu.Lock()
		defer db.mu.Unlock()
		return db.closing
	})
	close(goOn)
	require.NoError(t, <-closed)
	require.ErrorIs(t, <-flushed, ErrClosed)
}

// A second Close, as that of main beside a signal handler's, returns when the first has finished: the process may end
// then.
func TestASecondCloseWaitsForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inEvent, goOn := make(chan bool), make(chan bool)
		fsys := vfs.NewMem()
		db, err := Open("db", &Options{harness: harness.Harness{FS: fsys}, Events: Events{Flushed: func(FlushInfo) {
			inEvent <- true
			<-goOn
		}}})
		require.NoError(t, err)
		snapshot := db.NewSnapshot()
		set(t, db, "a", "1")
		go func() { _ = db.Flush(t.Context()) }()
		<-inEvent
		require.NoError(t, db.Set([]byte("b"), []byte("2"), Async))
		closed := make(chan error, 2)
		for range 2 {
			go func() { closed <- db.Close() }()
		}
		synctest.Wait()
		require.Empty(t, closed)
		close(goOn)
		for range 2 {
			require.ErrorIs(t, <-closed, ErrSnapshotsOpen)
		}
		require.ErrorIs(t, db.Close(), ErrSnapshotsOpen)
		require.NoError(t, snapshot.Close())
		db, err = Open("db", &Options{harness: harness.Harness{FS: fsys}})
		require.NoError(t, err)
		requireContents(t, storetest.Model{"a": "1", "b": "2"}, db)
		require.NoError(t, db.Close())
	})
}

// A CloseContext that need not wait has no error, whatever its context.
func TestCloseContextOfAStoreInADirectory(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	db := openMem(t, nil)
	require.NoError(t, db.Set([]byte("key"), nil, nil))
	require.NoError(t, db.CloseContext(ctx))
	require.NoError(t, db.CloseContext(t.Context()))
}

// Flush and Close at the same time: under the race detector.
func TestFlushBesideClose(t *testing.T) {
	for range 50 {
		db, err := Open("", &Options{InMemory: true})
		require.NoError(t, err)
		var done sync.WaitGroup
		for i := range 4 {
			done.Go(func() {
				for db.Set([]byte{byte(i)}, nil, Async) == nil {
					if err := db.Flush(t.Context()); err != nil {
						require.ErrorIs(t, err, ErrClosed)
					}
				}
			})
		}
		require.NoError(t, db.Set([]byte("k"), nil, Sync))
		require.NoError(t, db.Close())
		done.Wait()
	}
}

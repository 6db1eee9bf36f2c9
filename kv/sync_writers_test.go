package kv

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/storetest"
	sift "github.com/siftkv/siftkv/internal/vfs"
)

// A heldSyncs is a file system whose syncs of logs wait for the test, if it says so.
type heldSyncs struct {
	sift.FS
	held  atomic.Bool
	began chan struct{} // a sync has begun
	end   chan error    // and ends so
	logs  atomic.Int64  // syncs of logs
}

func newHeldSyncs() *heldSyncs {
	return &heldSyncs{FS: sift.NewMem(), began: make(chan struct{}), end: make(chan error)}
}

func (h *heldSyncs) Create(name string) (sift.WriteFile, error) {
	f, err := h.FS.Create(name)
	if kind, _ := manifest.ParseFileName(filepath.Base(name)); err != nil || kind != manifest.FileWAL {
		return f, err
	}
	return heldLog{f, h}, nil
}

// SyncFile lets Ingest link files instead of creating them.
func (h *heldSyncs) SyncFile(name string) error { return h.FS.(sift.FileSyncer).SyncFile(name) }

type heldLog struct {
	sift.WriteFile
	fs *heldSyncs
}

func (l heldLog) Sync() error {
	l.fs.logs.Add(1)
	if l.fs.held.Load() {
		l.fs.began <- struct{}{}
		if err := <-l.fs.end; err != nil {
			return err
		}
	}
	return l.WriteFile.Sync()
}

// hold makes a commit whose sync begins and does not end. The error comes after release.
func (h *heldSyncs) hold(commit func() error) (outcome <-chan error) {
	done := make(chan error, 1)
	h.held.Store(true)
	go func() { done <- commit() }()
	<-h.began
	return done
}

// release ends the sync that is held. Later ones are not.
func (h *heldSyncs) release(err error) {
	h.held.Store(false)
	h.end <- err
}

func openHeld(t *testing.T, o *Options) (*DB, *heldSyncs) {
	t.Helper()
	fs := newHeldSyncs()
	if o == nil {
		o = &Options{}
	}
	o.harness.FS = fs
	db, err := Open("db", o)
	require.NoError(t, err)
	return db, fs
}

func setSync(db *DB, key string) func() error {
	return func() error { return db.Set([]byte(key), []byte(key), Sync) }
}

func has(t *testing.T, r Reader, key string) bool {
	t.Helper()
	ok, err := r.Has([]byte(key))
	require.NoError(t, err)
	return ok
}

// While a sync does not end, everything goes on that needs none.
func TestWritesGoOnBesideASync(t *testing.T) {
	t.Parallel()
	db, fs := openHeld(t, &Options{MemtableSize: 64 << 10, MaxMemtables: 64})
	outcome := fs.hold(setSync(db, "durable"))
	require.False(t, has(t, db, "durable"), "it is not durable, and nobody after it promises less")
	before := db.NewSnapshot()
	want := storetest.Model{"durable": "durable"}
	for i := range 300 {
		k, v := fmt.Sprintf("%03d", i), string(make([]byte, 1000)) // logs are rotated, and memtables flushed
		require.NoError(t, db.Set([]byte(k), []byte(v), []*WriteOptions{NoSync, Async}[i%2]))
		require.True(t, has(t, db, k))
		want[k] = v
	}
	tx, err := db.Begin(true)
	require.NoError(t, err)
	require.True(t, has(t, tx, "durable"), "what was written later is visible")
	require.NoError(t, tx.Set([]byte("tx"), nil))
	require.NoError(t, tx.Commit(NoSync))
	want["tx"] = ""
	requireContents(t, want, db)
	requireContents(t, storetest.Model{}, before)
	require.NoError(t, before.Close())
	storetest.Until(func() bool { return db.Metrics().Flushes > 0 })
	require.Empty(t, outcome)
	fs.release(nil)
	require.NoError(t, <-outcome)
	require.NoError(t, db.Set([]byte("last"), nil, Sync))
	want["last"] = ""
	require.NoError(t, db.Close())
	db, err = Open("db", &Options{harness: harness.Harness{FS: fs.FS}})
	require.NoError(t, err)
	requireContents(t, want, db)
	require.NoError(t, db.Close())
}

// Whoever asks for a sync while one is under way shares the next one.
func TestWritersBesideASyncShareTheNext(t *testing.T) {
	db, fs := openHeld(t, nil)
	outcome := fs.hold(setSync(db, "first"))
	before := fs.logs.Load()
	var writers sync.WaitGroup
	for w := range 15 {
		writers.Go(func() {
			if err := db.Set([]byte{byte(w)}, nil, Sync); err != nil {
				t.Error(err)
			}
		})
	}
	storetest.Until(func() bool { _, waiting := db.commits.Queue(); return waiting == 15 })
	require.NoError(t, db.Set([]byte("beside"), nil, NoSync))
	_, waiting := db.commits.Queue()
	require.Equal(t, 15, waiting, "they do not go to the log before they can be synced")
	fs.release(nil)
	writers.Wait()
	require.NoError(t, <-outcome)
	require.Equal(t, before+1, fs.logs.Load())
	require.EqualValues(t, 2, db.Metrics().WALSyncs)
	require.NoError(t, db.Close())
}

// What was not visible when its sync failed is gone for good: for readers of the present,
// for who began to read before the store resumed, in tables, and after the next opening.
func TestAFailedSyncTakesBackWhatWasNotVisible(t *testing.T) {
	t.Parallel()
	db, fs := openHeld(t, &Options{harness: harness.Harness{Backoff: quickBackoff}, Merger: Int64Add})
	want := storetest.Model{"k": "old", "covered": "v"}
	require.NoError(t, db.Set([]byte("k"), []byte("old"), NoSync))
	require.NoError(t, db.Set([]byte("covered"), []byte("v"), NoSync))
	before, err := db.NewIter(nil)
	require.NoError(t, err)
	outcome := fs.hold(func() error {
		b := db.NewBatch()
		err := errors.Join(b.Set([]byte("k"), []byte("failed")), b.Set([]byte("new"), nil),
			b.Merge([]byte("count"), AppendInt64(nil, 1)), b.DeleteRange([]byte("c"), []byte("d")))
		return errors.Join(err, b.Commit(Sync))
	})
	requireContents(t, want, db)
	snap := db.NewSnapshot()
	fs.release(errDisk)
	err = <-outcome
	require.ErrorIs(t, err, errDisk)
	require.ErrorIs(t, err, ErrReadOnly)
	require.NotErrorIs(t, err, ErrNotDurable)
	requireContents(t, want, db)
	db.untilResumed()
	require.NoError(t, db.Set([]byte("later"), nil, NoSync))
	requireContents(t, want, snap)
	want["later"] = ""
	requireContents(t, want, db)
	require.True(t, before.First())
	require.Equal(t, "covered", string(before.Key()))
	require.True(t, before.Next())
	require.Equal(t, "old", string(before.Value()))
	require.False(t, before.Next())
	require.NoError(t, errors.Join(before.Close(), snap.Close()))
	require.NoError(t, db.Close())
	db, err = Open("db", &Options{harness: harness.Harness{FS: fs.FS}, Merger: Int64Add})
	require.NoError(t, err)
	requireContents(t, want, db)
	require.NoError(t, db.Close())
}

// What was visible when its sync failed stays, and the error says so.
func TestAFailedSyncLeavesWhatWasVisible(t *testing.T) {
	for _, later := range []*WriteOptions{NoSync, Async} {
		db, fs := openHeld(t, &Options{harness: harness.Harness{Backoff: quickBackoff}})
		outcome := fs.hold(setSync(db, "a"))
		require.NoError(t, db.Set([]byte("b"), []byte("b"), later))
		want := storetest.Model{"a": "a", "b": "b"}
		requireContents(t, want, db)
		fs.release(errDisk)
		err := <-outcome
		require.ErrorIs(t, err, ErrNotDurable)
		require.ErrorIs(t, err, ErrReadOnly)
		require.ErrorIs(t, err, errDisk)
		requireContents(t, want, db)
		db.untilResumed()
		requireContents(t, want, db)
		db.abandonLikeACrash(t)
		db, err = Open("db", &Options{harness: harness.Harness{FS: fs.FS}})
		require.NoError(t, err)
		requireContents(t, want, db)
		require.NoError(t, db.Close())
	}
}

// A memtable is not flushed before all of it is visible: what is not may never be.
func TestAFlushWaitsForTheSyncOfWhatItWrites(t *testing.T) {
	for _, outcome := range []error{nil, errDisk} {
		db, fs := openHeld(t, &Options{harness: harness.Harness{Backoff: quickBackoff}})
		set(t, db, "a", "a")
		done := fs.hold(setSync(db, "b"))
		db.mu.Lock() // nobody leads: the test does
		require.NoError(t, db.rotateTo(0, nil))
		require.Empty(t, flushable(db.imms, db.seq()))
		require.True(t, db.flushing)
		db.mu.Unlock()
		fs.release(outcome)
		want := storetest.Model{"a": "a"}
		if err := <-done; outcome == nil {
			require.NoError(t, err)
			want["b"] = "b"
		} else {
			require.ErrorIs(t, err, errDisk)
			db.untilResumed()
		}
		require.NoError(t, db.Flush(t.Context()))
		requireContents(t, want, db)
		require.NoError(t, db.Close())
	}
}

// The sync fails while a leader fills the log that is new, which breaks too: its writes
// would be durable before those that were lost.
func TestAFailedSyncBreaksTheNextLog(t *testing.T) {
	db, fs := openHeld(t, &Options{harness: harness.Harness{Backoff: never}})
	done := fs.hold(setSync(db, "a"))
	db.mu.Lock()
	require.NoError(t, db.rotateTo(0, nil))
	db.mu.Unlock()
	fs.release(errDisk)
	require.ErrorIs(t, <-done, errDisk)
	require.ErrorIs(t, db.commits.Log().Sync(), errDisk)
	require.ErrorIs(t, db.Set([]byte("b"), nil, NoSync), ErrReadOnly)
	require.NoError(t, db.Close(), "nothing was acknowledged that is not safe")
	db, err := Open("db", &Options{harness: harness.Harness{FS: fs.FS}})
	require.NoError(t, err)
	requireContents(t, storetest.Model{}, db)
	require.NoError(t, db.Close())
}

// A transaction conflicts with what is not visible yet, and is told when it is: the next
// attempt reads it.
func TestATransactionConflictsWithAWriteThatIsNotVisible(t *testing.T) {
	db, fs := openHeld(t, nil)
	begin := func() *Tx {
		tx, err := db.Begin(true)
		require.NoError(t, err)
		require.False(t, has(t, tx, "k"))
		require.NoError(t, tx.Set([]byte("x"), nil))
		return tx
	}
	early := begin()
	outcome := fs.hold(setSync(db, "k"))
	late := begin()
	refused := make(chan error, 2)
	for _, tx := range []*Tx{early, late} {
		go func() {
			err := tx.Commit(NoSync)
			if ok, _ := db.Has([]byte("k")); !ok {
				err = errors.New("the conflict was told before it could be seen")
			}
			refused <- err
		}()
	}
	fs.release(nil)
	require.ErrorIs(t, <-refused, ErrConflict)
	require.ErrorIs(t, <-refused, ErrConflict)
	require.NoError(t, <-outcome)
	require.NoError(t, db.Close())
}

// Functions that run alone, and Close, wait for the sync that is under way.
func TestExclusiveFunctionsWaitForASync(t *testing.T) {
	for name, do := range map[string]func(db *DB) error{
		"Flush":      func(db *DB) error { return db.Flush(t.Context()) },
		"Checkpoint": func(db *DB) error { return db.Checkpoint(t.Context(), "copy") },
		"Close":      (*DB).Close,
	} {
		db, fs := openHeld(t, nil)
		outcome := fs.hold(setSync(db, "a"))
		done := make(chan error)
		go func() { done <- do(db) }()
		storetest.Until(func() bool { _, waiting := db.commits.Queue(); return waiting == 1 })
		if name != "Close" {
			require.NoError(t, db.Set([]byte("b"), nil, NoSync), "others do not wait for it")
		}
		fs.release(nil)
		require.NoError(t, <-outcome, name)
		require.NoError(t, <-done, name)
		require.NoError(t, db.Close())
	}
}

// A writer that waits for its turn to sync can leave, and those behind it go on.
func TestContextsEndBesideASync(t *testing.T) {
	db, fs := openHeld(t, nil)
	outcome := fs.hold(setSync(db, "a"))
	ctx, cancel := context.WithCancel(t.Context())
	left, stays := make(chan error), make(chan error)
	wait := func(n int) { storetest.Until(func() bool { _, waiting := db.commits.Queue(); return waiting == n }) }
	go func() {
		b := db.NewBatch()
		left <- errors.Join(b.Set([]byte("left"), nil), b.CommitContext(ctx, Sync))
	}()
	wait(1)
	go func() { stays <- setSync(db, "b")() }()
	wait(2)
	cancel()
	require.ErrorIs(t, <-left, context.Canceled)
	fs.release(nil)
	require.NoError(t, <-outcome)
	require.NoError(t, <-stays)
	requireContents(t, storetest.Model{"a": "a", "b": "b"}, db)
	require.NoError(t, db.Close())
}

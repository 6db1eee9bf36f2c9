package kv

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/storetest"
)

// crashAroundLargeBatches has a store in dir do a small write, n large batches and another small write, with nothing
// synced or flushed, and leaves it as a crash would. It returns what the store held, and its logs.
func crashAroundLargeBatches(t *testing.T, dir string, n int, o Options) (want storetest.Model, logs []string) {
	t.Helper()
	o.MaxMemtables, o.Merger = n+3, modelMerger
	db := openDir(t, dir, &o)
	stopFlushes(db, true) // no flush takes the logs away
	set(t, db, "first", "small")
	for range n {
		var b *Batch
		b, want = largeBatch(t, db)
		require.NoError(t, b.Delete([]byte("list"))) // each batch leaves the same
		want.Delete("list")
		require.NoError(t, b.Commit(NoSync))
	}
	set(t, db, "small", "after")
	want.Set("first", "small")
	want.Set("small", "after")
	db.mu.Lock()
	for _, m := range append(db.imms, db.mem) {
		logs = append(logs, manifest.Path(db.dir, manifest.FileWAL, m.Log))
	}
	db.mu.Unlock()
	stopFlushes(db, false)
	require.NoError(t, db.abandon())
	return want, logs
}

// stopFlushes keeps a store from flushing, or lets it go on. It first waits for a flush under way: Flush may return
// before that ends, and its goroutine would flush the next memtables too.
func stopFlushes(db *DB, stop bool) {
	db.mu.Lock()
	for stop && db.flushing {
		db.progress.Wait()
	}
	db.flushing = stop
	db.mu.Unlock()
	db.progress.Broadcast()
}

// Logs with more large batches than memtables may exist are recovered, and then writes wait for flushes.
func TestRecoveryOfManyLargeBatches(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want, logs := crashAroundLargeBatches(t, dir, 4, Options{MemtableSize: 64 << 10})
	require.Len(t, logs, 6)
	db := openDir(t, dir, &Options{MemtableSize: 64 << 10, MaxMemtables: 2, Merger: modelMerger})
	requireContents(t, want, db)
	b, all := largeBatch(t, db)
	require.NoError(t, b.Commit(NoSync))
	want.Set("list", all["list"])
	requireContents(t, want, db)
	require.NoError(t, db.Close())
	db = openDir(t, dir, nil)
	requireContents(t, want, db)
	require.NoError(t, db.Close())
}

// A large record of which a crash left a part is not there at all, and what comes after it only where the mode says so.
func TestALargeRecordThatIsTorn(t *testing.T) {
	t.Parallel()
	small := Options{MemtableSize: 64 << 10}
	oneLog := Options{MemtableSize: 8 << 20}
	for _, c := range []struct {
		what string
		o    Options
		hurt func([]byte) []byte
	}{
		{"cut off", small, func(b []byte) []byte { return b[:len(b)/2] }},
		{"without a page", small, withoutAPage},
		{"without a page, other records behind it", oneLog, withoutAPage},
	} {
		for mode, want := range map[RecoveryMode]storetest.Model{
			PointInTime: {"first": "small"},
			SkipCorrupt: {"first": "small", "small": "after"},
		} {
			dir := t.TempDir()
			_, logs := crashAroundLargeBatches(t, dir, 1, c.o)
			rewrite(t, logs[min(1, len(logs)-1)], c.hurt)
			o := small
			o.Merger, o.RecoveryMode = modelMerger, mode
			_, err := Open(dir, &Options{RecoveryMode: TolerateTornTail, Merger: modelMerger})
			require.Error(t, err, c.what)
			db := openDir(t, dir, &o)
			requireContents(t, want, db)
			require.NotZero(t, db.Metrics().RecoveryDrops, "%s, %v", c.what, mode)
			b, all := largeBatch(t, db)
			require.NoError(t, b.Commit(Sync))
			all.Set("first", "small")
			if mode == SkipCorrupt {
				all.Set("small", "after")
			}
			require.NoError(t, db.Close())
			db = openDir(t, dir, nil)
			requireContents(t, all, db)
			require.NoError(t, db.Close())
		}
	}
}

func withoutAPage(b []byte) []byte {
	clear(b[len(b)/2:][:4096])
	return b
}

// A large batch that waits for memory when the store closes is refused, and is not there later.
func TestALargeBatchThatWaitsAtClose(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := &Options{MemtableSize: 64 << 10, MaxMemtables: 2, Merger: modelMerger}
	db := openDir(t, dir, o)
	stopFlushes(db, true)
	set(t, db, "first", "small")
	b, want := largeBatch(t, db)
	require.NoError(t, b.Commit(NoSync))
	want.Set("first", "small")
	b, _ = largeBatch(t, db)
	committed, closed := make(chan error), make(chan error)
	go func() { committed <- b.Commit(NoSync) }()
	storetest.Until(func() bool { busy, _ := db.commits.Queue(); return busy })
	go func() { closed <- db.Close() }()
	require.ErrorIs(t, <-committed, ErrClosed)
	stopFlushes(db, false)
	require.NoError(t, <-closed)
	require.ErrorIs(t, b.Commit(NoSync), ErrClosed)
	db = openDir(t, dir, o)
	requireContents(t, want, db)
	require.NoError(t, db.Close())
}

// A memtable of a large batch that could not be replaced at once does not stay when the store is at rest.
func TestALargeBatchIsFlushedAtRest(t *testing.T) {
	t.Parallel()
	db := openMem(t, &Options{MemtableSize: 64 << 10, MaxMemtables: 2, Merger: modelMerger})
	stopFlushes(db, true)
	set(t, db, "first", "small")
	b, want := largeBatch(t, db)
	want.Set("first", "small")
	require.NoError(t, b.Commit(NoSync))
	stopFlushes(db, false)
	db.reschedule(db.scheduleFlush)
	db.settle()
	require.Greater(t, db.Metrics().MemtableBytes, int64(b.Size()), "the batch is counted")
	require.Zero(t, db.examineMemtable())
	db.settle()
	require.Less(t, db.Metrics().MemtableBytes, int64(64<<10))
	requireContents(t, want, db)
}

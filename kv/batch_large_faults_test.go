package kv

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	sift "github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/internal/wal"
)

// A large batch whose record cannot be written, in part or at all, or synced, is not there: not now, and not when the
// store has resumed or is opened again. The same batch may be committed again, and small writes come after it.
func TestALargeBatchThatFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		op    string
		after int // calls of that kind that succeed before
	}{{"write", 0}, {"write", 1}, {"sync", 0}} {
		for _, separate := range []bool{false, true} {
			f := &vfstest.FaultFS{FS: sift.NewMem()}
			o := &Options{
				harness: harness.Harness{FS: f, Backoff: quickBackoff}, MemtableSize: 64 << 10, Merger: modelMerger,
				SeparateFrom:     100,
				SeparateAtCommit: separate,
			}
			db, err := Open("db", o)
			require.NoError(t, err)
			before := storetest.Model{}
			before.Set("00001", "before")
			require.NoError(t, db.Set([]byte("00001"), []byte("before"), Async))
			require.NoError(t, db.Flush(t.Context()))
			db.settle() // nothing else fails
			b, want := largeBatch(t, db)
			failed, left := false, c.after
			f.Set(func(call vfstest.Call) (int, error) {
				if failed || call.Op != c.op {
					return 0, nil
				}
				if left--; left >= 0 {
					return 0, nil
				}
				failed = true
				return call.Bytes / 2, errDisk
			})
			require.ErrorIs(t, b.Commit(Sync), errDisk, "%v", c)
			requireContents(t, before, db)
			db.untilResumed()
			db.settle()
			requireContents(t, before, db)
			require.NoError(t, b.Commit(Sync), "%v", c)
			require.NoError(t, db.Set([]byte("small"), []byte("after"), Sync))
			want.Set("small", "after")
			requireContents(t, want, db)
			db.abandonLikeACrash(t)
			db, err = Open("db", o)
			require.NoError(t, err)
			requireContents(t, want, db)
			require.NoError(t, db.Close())
		}
	}
}

// A transaction with many writes that conflicts leaves nothing behind, and the memtable that was made for it takes
// the writes that come.
func TestALargeTransactionThatConflicts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := &Options{MemtableSize: 64 << 10, Merger: modelMerger}
	db := openDir(t, dir, o)
	tx := beginTx(t, db, true)
	_, err := tx.Get([]byte("read"))
	require.ErrorIs(t, err, ErrNotFound)
	b, _ := largeBatch(t, db)
	require.NoError(t, b.Replay(tx))
	set(t, db, "read", "by the transaction")
	require.ErrorIs(t, tx.Commit(Sync), ErrConflict)
	want := storetest.Model{}
	want.Set("read", "by the transaction")
	requireContents(t, want, db)
	set(t, db, "next", "write")
	want.Set("next", "write")
	requireContents(t, want, db)
	db.abandonLikeACrash(t)
	db = openDir(t, dir, o)
	requireContents(t, want, db)
	require.NoError(t, db.Close())
}

// A disk that is full anywhere in the record of a large batch, or right behind it, leaves all of the batch or nothing:
// now, after a crash, and when there is room again.
func TestALargeBatchOnAFullDisk(t *testing.T) {
	t.Parallel()
	before := storetest.Model{}
	before.Set("00001", "before")
	before.Merge("before", "1") // the manifest says that there are operands
	commit := func(room func(record int) int, crash bool) {
		f := &vfstest.FaultFS{FS: sift.NewMem()}
		o := &Options{harness: harness.Harness{FS: f, Backoff: quickBackoff}, MemtableSize: 64 << 10,
			Merger: modelMerger}
		db, err := Open("db", o)
		require.NoError(t, err)
		set(t, db, "00001", "before")
		require.NoError(t, db.Merge([]byte("before"), []byte("1"), Sync))
		require.NoError(t, db.Flush(t.Context()))
		db.settle()
		b, want := largeBatch(t, db)
		maps.Copy(want, storetest.Model{"before": before["before"]})
		log := wal.NewWriter(discard{}, 1)
		require.NoError(t, log.Append(b.repr.Seal(1)))
		left := room(int(log.Size()))
		f.Set(vfstest.Quota(left))
		if err = b.Commit(NoSync); left < int(log.Size()) {
			requireFull(t, err, "db")
			requireFull(t, db.Set([]byte("small"), nil, Async), "db")
			want = maps.Clone(before)
		} else {
			require.NoError(t, err)
		}
		requireContents(t, want, db)
		if !crash {
			f.Set(nil)
			db.untilResumed()
			require.NoError(t, db.Set([]byte("small"), []byte("after"), Sync))
			want.Set("small", "after")
			requireContents(t, want, db)
		}
		_ = db.abandon() // the disk may still be full
		f.Set(nil)
		db, err = Open("db", o)
		require.NoError(t, err)
		requireContents(t, want, db)
		require.NoError(t, db.Close())
	}
	for _, room := range []func(record int) int{
		func(int) int { return 0 },
		func(record int) int { return record / 2 },
		func(record int) int { return record - 1 },
		func(record int) int { return record }, // not for the mark that ends the log
		func(record int) int { return record + 20 },
		func(record int) int { return record + 10_000 }, // not for a table
	} {
		commit(room, false)
		commit(room, true)
	}
}

// discard is a file that keeps nothing.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Sync() error                 { return nil }
func (discard) Close() error                { return nil }

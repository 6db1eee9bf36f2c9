package kv

import (
	"bytes"
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/wal"
)

// largeBatch returns a batch of 0.9 MB that takes more than a memtable of 64 KiB, and what it makes of a store.
func largeBatch(tb testing.TB, db *DB) (*Batch, storetest.Model) {
	tb.Helper()
	b, want := db.NewBatch(), storetest.Model{}
	for i := range 2000 {
		k, v := fmt.Sprintf("%05d", i*7919%2000), fmt.Sprintf("%0450d", i)
		require.NoError(tb, b.Set([]byte(k), []byte(v)))
		want.Set(k, v)
	}
	require.NoError(tb, b.DeleteRange([]byte("010"), []byte("011")))
	want.DeleteRange([]byte("010"), []byte("011"))
	for i := range 100 {
		operand := strconv.Itoa(i)
		require.NoError(tb, b.Merge([]byte("list"), []byte(operand)))
		want.Merge("list", operand)
	}
	require.NoError(tb, b.Delete([]byte("00001")))
	want.Delete("00001")
	return b, want
}

// A large batch is in one log record and one memtable of its own, and does not stay in memory until the next write
// comes. Snapshots of before do not see it, and the batch may be used again.
func TestALargeBatchIsAMemtable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := &Options{MemtableSize: 64 << 10, Merger: modelMerger}
	db := openDir(t, dir, o)
	set(t, db, "00001", "before")
	s := db.NewSnapshot()
	b, want := largeBatch(t, db)
	require.NoError(t, b.Commit(NoSync))
	requireContents(t, want, db)
	value, err := s.Get([]byte("00001"))
	require.NoError(t, err)
	require.Equal(t, "before", string(value))
	again := db.NewBatch()
	require.NoError(t, b.Replay(again))
	require.Equal(t, b.Len(), again.Len(), "a batch that was committed can be read")
	b.Reset()
	for range 2000 {
		require.NoError(t, b.Set([]byte("00000"), bytes.Repeat([]byte("x"), 450)))
	}
	requireContents(t, want, db)
	require.NoError(t, s.Close())
	db.settle()
	m := db.Metrics()
	require.Equal(t, 1, m.Memtables)
	require.Less(t, m.MemtableBytes, int64(64<<10), "it was flushed")
	require.NoError(t, db.Close())
	db = openDir(t, dir, o)
	requireContents(t, want, db)
	require.NoError(t, db.Close())
}

// The record of a large batch is read from a log into a memtable of its own, and the memory is counted.
func TestReplayOfALargeBatch(t *testing.T) {
	t.Parallel()
	db := openMem(t, &Options{MemtableSize: 64 << 10, Merger: modelMerger})
	b, want := largeBatch(t, db)
	small := db.NewBatch()
	require.NoError(t, small.Set([]byte("small"), []byte("batch")))
	want.Set("small", "batch")
	fs := db.fs
	f, err := fs.Create("log")
	require.NoError(t, err)
	w := wal.NewWriter(f, 1)
	require.NoError(t, w.Append(b.repr.Seal(1)))
	require.NoError(t, w.Append(small.repr.Seal(base.SeqNum(b.Len()+1))))
	require.NoError(t, w.Close())
	file, err := fs.Open("log")
	require.NoError(t, err)
	r := wal.NewReader(file, "log", 1)
	p := db.replayer()
	p.Combine = db.operands.EntryFunc()
	for range 2 {
		record, err := r.Next()
		require.NoError(t, err)
		require.NoError(t, p.Apply(record, r.Take))
	}
	require.NoError(t, file.Close())
	require.Len(t, p.Mems, 2)
	require.Equal(t, b.Len()-1, p.Mems[0].Len())
	require.Less(t, p.Mems[0].Capacity(), int64(2*b.Size()), "values are in the record")
	db.mu.Lock()
	db.imms = append(db.imms, p.Mems...)
	db.visible.Store(uint64(p.LastSeq))
	db.installState()
	db.mu.Unlock()
	requireContents(t, want, db)
	db.mu.Lock()
	db.imms = nil
	db.installState()
	db.mu.Unlock()
}

// A commit of a large batch allocates a small part of what the batch has: the order of its entries, and the log's
// buffer.
func TestACommitOfALargeBatchCopiesNothing(t *testing.T) {
	db := openDir(t, t.TempDir(), nil)
	closeAtEnd(t, db)
	b, value := db.NewBatch(), make([]byte, 1000)
	for i := range 20_000 {
		require.NoError(t, b.Set(fmt.Appendf(nil, "%08d", i*7919%20_000), value))
	}
	require.Greater(t, b.Size(), 20_000_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.NoError(t, b.Commit(NoSync))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(b.Size()/2))
}

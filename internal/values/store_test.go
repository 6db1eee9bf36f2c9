package values

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// A testStore is a Store in the directory db of a file system in memory.
type testStore struct {
	*Store
	t       *testing.T
	mem     *vfs.Mem
	nums    uint64
	failure error // what Fail was told
}

func newTestStore(t *testing.T) *testStore {
	t.Helper()
	ts := &testStore{t: t, mem: vfs.NewMem()}
	require.NoError(t, ts.mem.MkdirAll("db"))
	path := func(num uint64) string { return "db/" + manifest.FileName(manifest.FileBlob, num) }
	log := slog.New(slog.DiscardHandler)
	cleaner := &version.Cleaner{Tables: &tablecache.Cache{Path: path}, History: &version.History{}, FS: ts.mem,
		Dir: "db", Log: log, Position: func() manifest.Position { return manifest.Position{} }, Cleaned: func() {}}
	ts.Store = New(Config{FS: ts.mem, Dir: "db", NewNum: func() uint64 { ts.nums++; return ts.nums }, Log: log,
		Cleaner: cleaner, Blobs: version.BlobCache{Path: path, OpenFile: ts.mem.Open}, SeparateFrom: 100,
		MaxLogFile: 1 << 20, Fail: func(_ string, err error) error { ts.failure = err; return err }})
	cleaner.Blobs = &ts.Blobs
	cleaner.Start()
	t.Cleanup(cleaner.Stop)
	return ts
}

// requireFiles requires that the directory has the blob files of some numbers, and no other files.
func (ts *testStore) requireFiles(nums ...uint64) {
	ts.t.Helper()
	ts.Cleaner.Wait()
	var want []string
	for _, num := range nums {
		want = append(want, manifest.FileName(manifest.FileBlob, num))
	}
	have, err := ts.mem.List("db")
	require.NoError(ts.t, err)
	require.ElementsMatch(ts.t, want, have)
}

// newMem returns a memtable. It releases what it holds when it is dropped.
func (ts *testStore) newMem() *memtable.Memtable { return memtable.New(1 << 16) }

// newLog returns the log of a memtable.
func (ts *testStore) newLog() *wal.Writer {
	f, err := vfs.NewMem().Create("log")
	require.NoError(ts.t, err)
	return wal.NewWriter(f, 1)
}

// batch returns a batch of values of some lengths, under keys a, b and so on.
func batch(lengths ...int) *batchrepr.Writer {
	var b batchrepr.Writer
	for i, n := range lengths {
		b.Add(base.KindSet, []byte{'a' + byte(i)}, make([]byte, n))
	}
	return &b
}

// commit commits a batch whose first write is number seq, and returns its record with handles.
func (ts *testStore) commit(b *batchrepr.Writer, seq base.SeqNum, log *wal.Writer, mem *memtable.Memtable) []byte {
	ts.t.Helper()
	var into batchrepr.Writer
	require.True(ts.t, ts.Commits().Has(b))
	require.NoError(ts.t, ts.Commits().Put(b, seq, log, mem, &into))
	require.NoError(ts.t, ts.Commits().Flush())
	return into.Seal(seq)
}

// kinds returns the kinds of the entries of a record.
func kinds(t *testing.T, record []byte) (all []base.Kind) {
	t.Helper()
	for e, err := range batchrepr.All(record) {
		require.NoError(t, err)
		all = append(all, e.Key.Kind())
	}
	return all
}

// After Close nothing is left of streams, and logs' files are closed for writing.
func TestCloseEndsEveryFile(t *testing.T) {
	t.Parallel()
	ts := newTestStore(t)
	_, err := ts.Create()
	require.NoError(t, err)
	mem := ts.newMem()
	ts.commit(batch(200), 1, ts.newLog(), mem)
	ts.requireFiles(1, 2)
	require.NoError(t, ts.Close())
	ts.requireFiles(2)
	_, err = ts.Create()
	require.ErrorIs(t, err, base.ErrClosed)
	require.Nil(t, ts.commits.current)
	mem.Drop()
	require.Empty(t, ts.Files())
	ts.requireFiles(2) // recovery needs it
}

package faults

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// A lossyFS is a file system that drops pages of blob files which it cannot write: from then on they read as zeros.
type lossyFS struct {
	vfs.FS

	mu     sync.Mutex
	fail   bool // syncs of blob files fail, and drop what was not synced
	synced map[string]int64
	lost   map[string]bool // what is not synced is gone
}

func newLossyFS() *lossyFS {
	return &lossyFS{FS: vfs.NewMem(), synced: map[string]int64{}, lost: map[string]bool{}}
}

func (l *lossyFS) set(fail bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = fail
}

// loseAll drops what is not synced of all files, before the next sync.
func (l *lossyFS) loseAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range l.synced {
		l.lost[name] = true
	}
}

func (l *lossyFS) Create(name string) (vfs.WriteFile, error) {
	f, err := l.FS.Create(name)
	if err != nil || !strings.HasSuffix(name, ".blob") {
		return f, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.synced[name] = 0
	return &lossyWriteFile{WriteFile: f, fs: l, name: name}, nil
}

func (l *lossyFS) Open(name string) (vfs.ReadFile, error) {
	f, err := l.FS.Open(name)
	if err != nil || !strings.HasSuffix(name, ".blob") {
		return f, err
	}
	return lossyReadFile{f, l, name}, nil
}

type lossyWriteFile struct {
	vfs.WriteFile
	fs      *lossyFS
	name    string
	written int64
}

func (f *lossyWriteFile) Write(p []byte) (int, error) {
	n, err := f.WriteFile.Write(p)
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.written += int64(n)
	return n, err
}

func (f *lossyWriteFile) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.fs.fail {
		f.fs.lost[f.name] = true
	}
	if f.fs.lost[f.name] {
		return storetest.ErrDisk
	}
	f.fs.synced[f.name] = f.written
	return nil
}

type lossyReadFile struct {
	vfs.ReadFile
	fs   *lossyFS
	name string
}

func (f lossyReadFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.ReadFile.ReadAt(p, off)
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.fs.lost[f.name] {
		if there := f.fs.synced[f.name] - off; there < int64(n) {
			clear(p[max(there, 0):n])
		}
	}
	return n, err
}

// writeForLoss makes writes, some of which are synced, and returns what a store then has.
func writeForLoss(t *testing.T, db *kv.DB) storetest.Model {
	m := storetest.Model{}
	for i := range 30 {
		o := kv.NoSync
		if i == 10 {
			o = kv.Sync
		}
		k := fmt.Sprintf("key%02d", i)
		m[k] = strings.Repeat(k, 100+i*10)
		if i%3 == 0 {
			m[k] = k
		}
		require.NoError(t, db.Set([]byte(k), []byte(m[k]), o))
	}
	m["operands"] = strings.Repeat("base", 100) + ",x"
	require.NoError(t, db.Set([]byte("operands"), []byte(strings.Repeat("base", 100)), kv.NoSync))
	require.NoError(t, db.Merge([]byte("operands"), []byte("x"), kv.NoSync))
	return m
}

// A sync of a log's blob file that fails, and drops what was written, loses nothing that was acknowledged: it is read
// as before, and is durable once the store has resumed.
func TestAtCommitSurvivesASyncThatDropsValues(t *testing.T) {
	t.Parallel()
	fsys := newLossyFS()
	o := stores.With(harness.Harness{FS: fsys, Backoff: storetest.Quick},
		&kv.Options{SeparateFrom: 100, SeparateAtCommit: true,
			Merger: kv.Append(",")})
	db, err := kv.Open("db", o)
	require.NoError(t, err)
	m := writeForLoss(t, db)
	it, err := db.NewIter(nil)
	require.NoError(t, err)
	fsys.set(true)
	require.ErrorIs(t, db.Sync(t.Context()), kv.ErrReadOnly)
	storetest.RequireContents(t, m, db)
	fsys.set(false)
	stores.UntilResumed(db)
	storetest.RequireContents(t, m, db)
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		require.Equal(t, m[string(it.Key())], string(it.Value()))
		n++
	}
	require.Equal(t, len(m), n)
	require.NoError(t, it.Close())
	stores.Crash(t, db)
	db, err = kv.Open("db", o)
	require.NoError(t, err)
	storetest.RequireContents(t, m, db)
	storetest.RequireBlobs(t, db)
	require.NoError(t, db.Close())
}

// Close saves the values that a failed sync has dropped, where nothing has resumed before.
func TestCloseSavesValuesThatASyncDropped(t *testing.T) {
	t.Parallel()
	fsys := newLossyFS()
	o := stores.With(harness.Harness{FS: fsys, Backoff: storetest.Never},
		&kv.Options{SeparateFrom: 100, SeparateAtCommit: true,
			Merger: kv.Append(",")})
	db, err := kv.Open("db", o)
	require.NoError(t, err)
	m := writeForLoss(t, db)
	fsys.set(true)
	require.ErrorIs(t, db.Sync(t.Context()), kv.ErrReadOnly)
	fsys.set(false)
	require.NoError(t, db.Close())
	db, err = kv.Open("db", o)
	require.NoError(t, err)
	storetest.RequireContents(t, m, db)
	require.NoError(t, db.Close())
}

// Values that were dropped before any sync has said so are read, and flushed, out of memory.
func TestFlushCopiesValuesThatWereDropped(t *testing.T) {
	t.Parallel()
	fsys := newLossyFS()
	o := stores.With(harness.Harness{FS: fsys, Backoff: storetest.Quick},
		&kv.Options{SeparateFrom: 100, SeparateAtCommit: true,
			Merger: kv.Append(",")})
	db, err := kv.Open("db", o)
	require.NoError(t, err)
	m := writeForLoss(t, db)
	fsys.loseAll()
	storetest.RequireContents(t, m, db)
	require.NoError(t, db.Flush(t.Context()))
	storetest.RequireContents(t, m, db)
	stores.Crash(t, db)
	db, err = kv.Open("db", o)
	require.NoError(t, err)
	storetest.RequireContents(t, m, db)
	require.NoError(t, db.Close())
}

// maxUnsynced is how many bytes of a log's values are in memory before they are synced.
const maxUnsynced = 8 << 20

// An early sync that fails is a failure of the store: nothing more is handed to a file that is
// given up, and what was is durable once the store has resumed.
func TestAtCommitEarlySyncFails(t *testing.T) {
	t.Parallel()
	fsys := newLossyFS()
	o := stores.With(harness.Harness{FS: fsys, Backoff: storetest.Quick}, &kv.Options{SeparateAtCommit: true})
	db, err := kv.Open("db", o)
	require.NoError(t, err)
	m := storetest.Model{}
	v := strings.Repeat("v", 1<<20)
	for i := range maxUnsynced >> 20 {
		k := fmt.Sprintf("key%02d", i)
		if err := db.Set([]byte(k), []byte(v), kv.NoSync); err == nil {
			m[k] = v
		} else { // the last begins the sync
			require.Equal(t, maxUnsynced>>20-1, i)
			require.ErrorIs(t, err, storetest.ErrDisk)
		}
		fsys.set(true) // the file is there
	}
	storetest.Until(func() bool { return db.Metrics().Failures > 0 })
	fsys.set(false)
	stores.UntilResumed(db)
	require.NoError(t, db.Set([]byte("later"), []byte("1"), kv.NoSync))
	m["later"] = "1"
	stores.Crash(t, db)
	db, err = kv.Open("db", o)
	require.NoError(t, err)
	storetest.RequireContents(t, m, db)
	require.NoError(t, db.Close())
}

// A slot has the values that the disk has dropped: its log is copied out of memory.
func TestSlotsHaveValuesThatWereDropped(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, *lossyFS, *kv.DB){
		"before a flush": func(t *testing.T, fsys *lossyFS, db *kv.DB) {
			fsys.loseAll()
			require.NoError(t, db.Flush(t.Context()))
		},
		"by a sync": func(t *testing.T, fsys *lossyFS, db *kv.DB) {
			fsys.set(true)
			require.ErrorIs(t, db.Sync(t.Context()), kv.ErrReadOnly)
			fsys.set(false)
			stores.UntilResumed(db)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fsys := newLossyFS()
			o := stores.With(harness.Harness{FS: fsys, Backoff: storetest.Quick},
				&kv.Options{SeparateFrom: 100, SeparateAtCommit: true, Merger: kv.Append(",")})
			db, err := kv.Open("db", o)
			require.NoError(t, err)
			slot, snap, err := db.CreateSlot(t.Context(), "s")
			require.NoError(t, err)
			require.NoError(t, snap.Close())
			m := writeForLoss(t, db)
			lose(t, fsys, db)
			require.NoError(t, db.Set([]byte("end"), nil, kv.Sync))
			m["end"] = ""
			require.Empty(t, db.Slots()[0].Lost)
			require.Equal(t, m, followTo(t, slot, "end"))
			require.NoError(t, slot.Close())
			stores.Crash(t, db)
			db, err = kv.Open("db", o)
			require.NoError(t, err)
			slot, err = db.OpenSlot("s")
			require.NoError(t, err)
			require.Equal(t, m, followTo(t, slot, "end"))
			require.NoError(t, db.Close())
		})
	}
}

// followTo returns what the changes of a slot are up to the one that sets a key.
func followTo(t *testing.T, slot *kv.Slot, end string) storetest.Model {
	m := storetest.Model{}
	for c, err := range slot.Changes(t.Context()) {
		require.NoError(t, err)
		require.NoError(t, c.Replay(storetest.ModelWriter{Model: m}))
		if _, ok := m[end]; ok {
			break
		}
	}
	return m
}

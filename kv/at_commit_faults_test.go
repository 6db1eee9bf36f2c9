package kv

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// An openFS counts the files that are open.
type openFS struct {
	vfs.FS
	open *atomic.Int64
}

func (o openFS) Create(name string) (vfs.WriteFile, error) {
	f, err := o.FS.Create(name)
	if err == nil {
		o.open.Add(1)
		f = openWriteFile{f, o.open}
	}
	return f, err
}

func (o openFS) Open(name string) (vfs.ReadFile, error) {
	f, err := o.FS.Open(name)
	if err == nil {
		o.open.Add(1)
		f = openReadFile{f, o.open}
	}
	return f, err
}

type openWriteFile struct {
	vfs.WriteFile
	open *atomic.Int64
}

func (f openWriteFile) Close() error { f.open.Add(-1); return f.WriteFile.Close() }

type openReadFile struct {
	vfs.ReadFile
	open *atomic.Int64
}

func (f openReadFile) Close() error { f.open.Add(-1); return f.ReadFile.Close() }

// A commitFaults is a history of values that are set apart by their commits, over logs that are short, on a disk of
// which one call fails, or all from then on.
type commitFaults struct {
	t    *testing.T
	mode storetest.FaultMode
	at   int
	what string
	disk *crashfs.Disk
	fs   *vfstest.FaultFS
	open *atomic.Int64
	o    *Options
	hit  atomic.Bool
	ok   map[int]bool // writes that were acknowledged

	acked, handed, synced int // the last of these
}

const commitFaultWrites = 24

func newCommitFaults(t *testing.T, mode storetest.FaultMode, at int) *commitFaults {
	r := &commitFaults{t: t, mode: mode, at: at, disk: crashfs.NewDisk(), open: new(atomic.Int64),
		ok: map[int]bool{}, acked: -1, handed: -1, synced: -1, what: fmt.Sprintf("call %d %s:", at, mode.Name)}
	r.fs = &vfstest.FaultFS{FS: crashfs.New(r.disk, nothing)}
	r.o = &Options{harness: harness.Harness{FS: openFS{r.fs, r.open}, Backoff: quickBackoff, BlobSize: 1500,
		MinStreamed: 300}, SeparateFrom: 50, SeparateAtCommit: true, Merger: Append(","), MemtableSize: 64 << 10}
	return r
}

func (r *commitFaults) value(i int) string {
	return fmt.Sprintf("%d %s", i, strings.Repeat(fmt.Sprint(i, "."), 60))
}

func (r *commitFaults) streamed(i int) bool { return i%7 == 3 }

// write is one write, which counts itself.
func (r *commitFaults) write(db *DB, i int, o *WriteOptions) error {
	v := r.value(i)
	if r.streamed(i) {
		v += strings.Repeat("s", 300)
		return db.SetReader(context.Background(), []byte("count"), int64(len(v)), strings.NewReader(v), o)
	}
	b := db.NewBatch()
	require.NoError(r.t, b.Set([]byte("small"), []byte("x")))
	require.NoError(r.t, b.Set([]byte("count"), []byte(v)))
	require.NoError(r.t, b.Set(fmt.Appendf(nil, "key%02d", i), []byte(v)))
	require.NoError(r.t, b.SetTTL(fmt.Appendf(nil, "ttl%02d", i), []byte(v), time.Hour))
	require.NoError(r.t, b.Merge([]byte("operands"), []byte(strings.Repeat("o", 60))))
	return b.Commit(o)
}

// check requires that a store has all writes up to one, as far as they were acknowledged, and of others nothing else
// than what they wrote.
func (r *commitFaults) check(db *DB, least int) {
	r.t.Helper()
	n := -1
	v, err := db.Get([]byte("count"))
	if err == nil {
		_, err = fmt.Sscanf(string(v), "%d ", &n)
		require.NoError(r.t, err, r.what)
		require.True(r.t, strings.HasPrefix(string(v), r.value(n)), r.what)
	} else {
		require.ErrorIs(r.t, err, ErrNotFound, r.what)
	}
	require.GreaterOrEqual(r.t, n, least, r.what)
	for i := range commitFaultWrites {
		for _, k := range []string{"key", "ttl"} {
			v, err := db.Get(fmt.Appendf(nil, "%s%02d", k, i))
			if err == nil {
				require.Equal(r.t, r.value(i), string(v), r.what)
				continue
			}
			require.ErrorIs(r.t, err, ErrNotFound, r.what)
			require.False(r.t, i <= least && r.ok[i] && !r.streamed(i), "%s write %d", r.what, i)
		}
	}
}

// run writes, and returns the store.
func (r *commitFaults) run() *DB {
	db, err := Open("db", r.o)
	require.NoError(r.t, err)
	before := 0
	r.fs.Set(func(c vfstest.Call) (int, error) {
		if before == 0 {
			before = c.N - 1
		}
		if !r.mode.Fails(c, before+r.at) {
			return 0, nil
		}
		r.hit.Store(true)
		return c.Bytes / 2, errDisk
	})
	for i := range commitFaultWrites {
		o := []*WriteOptions{Sync, NoSync, Async}[i%3]
		if err := r.write(db, i, o); err != nil {
			require.ErrorIs(r.t, err, errDisk, r.what)
			r.heal(db)
			continue
		}
		r.ok[i], r.acked = true, i
		if o != Async {
			r.handed = i
		}
		if o == Sync {
			r.synced = i
		}
		if i == 10 {
			if db.Flush(context.Background()) == nil {
				r.handed, r.synced = i, i
			}
			r.heal(db)
		}
	}
	return db
}

func (r *commitFaults) heal(db *DB) {
	if r.mode.Resumes {
		db.untilResumed()
	}
}

// cut checks what a power cut would leave.
func (r *commitFaults) cut(percent int) {
	disk := r.disk.CutTo(percent, rand.New(rand.NewPCG(uint64(r.at), 1)))
	o := *r.o
	o.harness.FS = crashfs.New(disk, nothing)
	db, err := Open("db", &o)
	require.NoError(r.t, err, r.what)
	r.check(db, r.synced)
	requireBlobs(r.t, db)
	require.NoError(r.t, db.Close())
}

// Each call to the file system fails in turn, once and for good. What was acknowledged is there, also after a power
// cut, and files are neither left open nor, after the next open, left over.
func TestAtCommitWhereEachCallFails(t *testing.T) {
	t.Parallel()
	for _, mode := range storetest.FaultModes {
		hit := true
		for at := 1; hit; at += scale.Stride(5, 1) {
			r := newCommitFaults(t, mode, at)
			db := r.run()
			hit = r.hit.Load()
			if mode.Resumes {
				r.fs.Set(nil)
				db.untilResumed()
				r.check(db, r.acked)
				for _, percent := range []int{0, 50, 100} {
					r.cut(percent)
				}
			}
			if db.Close() == nil {
				r.handed = r.acked
			}
			require.Zero(t, r.open.Load(), r.what)
			r.fs.Set(nil)
			db, err := Open("db", r.o)
			require.NoError(t, err, r.what)
			r.check(db, r.handed)
			requireBlobs(t, db)
			require.NoError(t, db.Close())
		}
	}
}

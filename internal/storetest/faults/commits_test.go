package faults

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
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv"
)

// A commitFaults is a history of values that are separated at their commits, over logs that are short, on a disk of
// which one call fails, or all from then on.
type commitFaults struct {
	t    *testing.T
	mode storetest.FaultMode
	at   int
	what string
	disk *crashfs.Disk
	fs   *vfstest.FaultFS
	open *atomic.Int64
	o    *kv.Options
	hit  atomic.Bool
	ok   map[int]bool // writes that were acknowledged

	acked, handed, synced int // the last of these
}

const commitFaultWrites = 24

func newCommitFaults(t *testing.T, mode storetest.FaultMode, at int) *commitFaults {
	r := &commitFaults{t: t, mode: mode, at: at, disk: crashfs.NewDisk(), open: new(atomic.Int64),
		ok: map[int]bool{}, acked: -1, handed: -1, synced: -1, what: fmt.Sprintf("call %d %s:", at, mode.Name)}
	r.fs = &vfstest.FaultFS{FS: crashfs.New(r.disk, storetest.Nothing)}
	r.o = stores.With(harness.Harness{FS: storetest.OpenFS{FS: r.fs, Opened: r.open}, Backoff: storetest.Quick,
		BlobSize:    1500,
		MinStreamed: 300}, &kv.Options{SeparateFrom: 50, SeparateAtCommit: true, Merger: kv.Append(","),
		MemtableSize: 64 << 10})
	return r
}

func (r *commitFaults) value(i int) string {
	return fmt.Sprintf("%d %s", i, strings.Repeat(fmt.Sprint(i, "."), 60))
}

func (r *commitFaults) streamed(i int) bool { return i%7 == 3 }

// write is one write, which counts itself.
func (r *commitFaults) write(db *kv.DB, i int, o *kv.WriteOptions) error {
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
func (r *commitFaults) check(db *kv.DB, least int) {
	r.t.Helper()
	n := -1
	v, err := db.Get([]byte("count"))
	if err == nil {
		_, err = fmt.Sscanf(string(v), "%d ", &n)
		require.NoError(r.t, err, r.what)
		require.True(r.t, strings.HasPrefix(string(v), r.value(n)), r.what)
	} else {
		require.ErrorIs(r.t, err, kv.ErrNotFound, r.what)
	}
	require.GreaterOrEqual(r.t, n, least, r.what)
	for i := range commitFaultWrites {
		for _, k := range []string{"key", "ttl"} {
			v, err := db.Get(fmt.Appendf(nil, "%s%02d", k, i))
			if err == nil {
				require.Equal(r.t, r.value(i), string(v), r.what)
				continue
			}
			require.ErrorIs(r.t, err, kv.ErrNotFound, r.what)
			require.False(r.t, i <= least && r.ok[i] && !r.streamed(i), "%s write %d", r.what, i)
		}
	}
}

// run writes, and returns the store.
func (r *commitFaults) run() *kv.DB {
	db, err := kv.Open("db", r.o)
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
		return c.Bytes / 2, storetest.ErrDisk
	})
	for i := range commitFaultWrites {
		o := []*kv.WriteOptions{kv.Sync, kv.NoSync, kv.Async}[i%3]
		if err := r.write(db, i, o); err != nil {
			require.ErrorIs(r.t, err, storetest.ErrDisk, r.what)
			r.heal(db)
			continue
		}
		r.ok[i], r.acked = true, i
		if o != kv.Async {
			r.handed = i
		}
		if o == kv.Sync {
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

func (r *commitFaults) heal(db *kv.DB) {
	if r.mode.Resumes {
		stores.UntilResumed(db)
	}
}

// cut checks what a power cut would leave.
func (r *commitFaults) cut(percent int) {
	disk := r.disk.CutTo(percent, rand.New(rand.NewPCG(uint64(r.at), 1)))
	o := *r.o
	harness.Of(&o).FS = crashfs.New(disk, storetest.Nothing)
	db, err := kv.Open("db", &o)
	require.NoError(r.t, err, r.what)
	r.check(db, r.synced)
	storetest.RequireBlobs(r.t, db)
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
				stores.UntilResumed(db)
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
			db, err := kv.Open("db", r.o)
			require.NoError(t, err, r.what)
			r.check(db, r.handed)
			storetest.RequireBlobs(t, db)
			require.NoError(t, db.Close())
		}
	}
}

package kv

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

var errDisk = errors.New("no space left on the test's device")

// TestDiskFailures lets a call that changes the disk fail, once or from then on.
// The store then takes no writes and says why, but answers; and what it had is
// there when it is opened again.
func TestDiskFailures(t *testing.T) {
	for seed := range uint64(envInt("DISK_FAILURES", 100/raceFactor)) {
		r := &cutRun{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 4)), states: []model{{}}}
		mem := vfs.NewCrashableMem()
		calls, failAt, forGood := 0, 1+r.rng.IntN(400), r.rng.IntN(2) == 0
		r.opts = randomOptions(r.rng)
		r.opts.fs = newCrashFS(mem, func() error {
			calls++
			if calls == failAt || forGood && calls > failAt {
				return errDisk
			}
			return nil
		})
		r.untilItFails()
		c := cut{call: failAt, synced: int(r.synced.Load()), begun: int(r.begun.Load())}
		r.recovered(c, mem, nothing)
	}
}

// untilItFails writes until the store no longer takes writes.
func (r *cutRun) untilItFails() {
	db, err := Open("db", r.opts)
	if err != nil {
		require.ErrorIs(r.t, err, errDisk, "seed %d", r.seed)
		return
	}
	r.db = db
	acknowledged := int64(0)
	for err == nil && len(r.states) < 1000 {
		acknowledged = int64(len(r.states) - 1)
		switch r.rng.IntN(20) {
		case 0:
			if err = db.Flush(); err == nil {
				r.durable()
			}
		case 1:
			if err = db.Compact(nil, nil); err == nil {
				r.durable()
			}
		default:
			err = r.write()
		}
	}
	if err != nil {
		require.ErrorIs(r.t, err, errDisk, "seed %d", r.seed)
		k := []byte("k")
		for _, err := range []error{db.Set(k, k, nil), db.Flush(), db.Compact(nil, nil)} {
			require.ErrorIs(r.t, err, ErrReadOnly, "seed %d", r.seed)
			require.ErrorIs(r.t, err, errDisk, "the cause is told")
		}
		r.readable()
	}
	if err := db.Close(); err == nil {
		r.synced.Store(acknowledged)
	}
}

// readable checks that the store still answers, as of its last write that was
// acknowledged.
func (r *cutRun) readable() {
	last := r.states[len(r.states)-1]
	for _, want := range []model{last, r.states[max(0, len(r.states)-2)]} {
		n, err := r.db.Get([]byte("count"))
		if want["count"] == string(n) {
			requireContents(r.t, want, r.db)
			return
		}
		require.True(r.t, err == nil || errors.Is(err, ErrNotFound), "seed %d: %v", r.seed, err)
	}
	require.Fail(r.t, "the store is behind its writes", "seed %d", r.seed)
}

// What was durable is there although nothing else of the disk is: the names of
// all directories too.
func TestNewDirectoriesOutliveAPowerCut(t *testing.T) {
	mem := vfs.NewCrashableMem()
	open := func(mem *vfs.MemFS, dir string) *DB {
		db, err := Open(dir, &Options{fs: newCrashFS(mem, nothing)})
		require.NoError(t, err)
		return db
	}
	db := open(mem, "a/b/store")
	require.NoError(t, db.Set([]byte("k"), []byte("v"), Sync))
	require.NoError(t, db.Checkpoint("c/d/copy"))
	disk := mem.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, db.Close())
	for _, dir := range []string{"a/b/store", "c/d/copy"} {
		db := open(disk, dir)
		requireContents(t, model{"k": "v"}, db)
		require.NoError(t, db.Close())
	}
}

package powercuts

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	sift "github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv"
)

// A faultRun is a history on a disk that fails at one call.
type faultRun struct {
	*cutRun
	mode  storetest.FaultMode
	at    int
	acked int // writes that were acknowledged; states may have one more, which failed
	fs    *vfstest.FaultFS
	hit   string // the call that failed first
	what  string // for messages
}

func newFaultRun(t *testing.T, seed uint64, mode storetest.FaultMode, at int) *faultRun {
	r := &faultRun{
		cutRun: &cutRun{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 4)), states: []storetest.Model{{}}},
		mode:   mode, at: at,
		fs:   &vfstest.FaultFS{FS: sift.NewMem()},
		what: fmt.Sprintf("seed %d, call %d fails (%s)", seed, at, mode.Name),
	}
	r.fs.Set(func(c vfstest.Call) (int, error) {
		if !mode.Fails(c, at) {
			return 0, nil
		}
		if r.hit == "" {
			r.hit = c.Op
		}
		return c.Bytes / 2, storetest.ErrDisk
	})
	return r
}

func (r *faultRun) options() *kv.Options {
	o := stores.RandomOptions(r.rng)
	harness.Of(o).FS, harness.Of(o).Backoff, harness.Of(o).MaxManifestSize = r.fs, storetest.Quick, 2000
	stores.RandomSeparation(o, r.rng)
	return o
}

// run goes through a history of steps, and checks that the store is right after
// it: as it is, and when it is opened again.
func (r *faultRun) run(steps int) {
	for range steps {
		if r.db == nil && !r.reopen() {
			break
		}
		if !r.faultStep() {
			break
		}
	}
	c := cut{call: r.at, synced: r.acked, begun: len(r.states) - 1}
	if r.db != nil {
		r.readable()
		if r.db.Close() != nil { // Async writes may have been in memory alone
			c.synced = int(r.synced.Load())
		}
	}
	r.fs.Set(nil)
	r.recoveredOn(c, r.fs)
}

// reopen opens the store, a second time if the first fails.
func (r *faultRun) reopen() bool {
	for range 4 {
		db, err := kv.Open("db", r.options())
		if err == nil {
			r.db = db
			return true
		}
		require.ErrorIs(r.t, err, storetest.ErrDisk, r.what)
	}
	require.False(r.t, r.mode.Resumes, "%s: the store does not open", r.what)
	return false
}

// faultStep does one thing to the store. It reports whether the history goes on.
func (r *faultRun) faultStep() bool {
	switch n := r.rng.IntN(40); {
	case n < 3:
		return r.attempt(func() error { return r.db.Flush(context.Background()) })
	case n < 4:
		return r.attempt(func() error { return r.db.Compact(context.Background(), nil, nil) })
	case n < 5:
		return r.attempt(r.checkpoint)
	case n < 6:
		db := r.db
		r.db = nil
		if err := db.Close(); err != nil {
			require.ErrorIs(r.t, err, storetest.ErrDisk, r.what)
			if r.mode.Resumes {
				return r.resync()
			}
			r.acked = int(r.synced.Load()) // Async writes may have been in memory alone
			return false
		}
		return true
	case n < 12:
		r.readable()
		return true
	}
	return r.attempt(func() error {
		err := r.write()
		if err == nil {
			r.acked = len(r.states) - 1
		}
		return err
	})
}

// resync finds out what a store has that could not be closed: the last write,
// although it failed, or less, if it was not synced.
func (r *faultRun) resync() bool {
	if !r.reopen() {
		return false
	}
	n := -1
	for n < 0 {
		if got, err := r.scan(); err == nil {
			n = got
		}
	}
	require.GreaterOrEqual(r.t, n, int(r.synced.Load()), r.what)
	r.states, r.acked = r.states[:n+1], n
	r.durable()
	return true
}

// attempt does something that writes; if it fails, again when the store has
// resumed.
func (r *faultRun) attempt(f func() error) bool {
	for range 12 {
		err := f()
		if err == nil {
			return true
		}
		require.ErrorIs(r.t, err, storetest.ErrDisk, r.what)
		if !r.mode.Resumes {
			r.refuses()
			return false
		}
		r.readable()
		r.untilResumed()
	}
	require.Fail(r.t, "the store does not resume", r.what)
	return false
}

// untilResumed returns when the store takes writes.
func (r *faultRun) untilResumed() {
	stores.UntilResumed(r.db)
	r.states = r.states[:r.acked+1] // what failed can come back no more
}

// refuses checks what a store that has failed says, if it has.
func (r *faultRun) refuses() {
	if r.db.Metrics().Failure == "" {
		return // a checkpoint, or a compaction that was asked for
	}
	k := []byte("k")
	for _, err := range []error{r.db.Set(k, k, nil), r.db.Flush(context.Background()),
		r.db.Compact(context.Background(), nil, nil)} {
		require.ErrorIs(r.t, err, kv.ErrReadOnly, r.what)
		require.ErrorIs(r.t, err, storetest.ErrDisk, "%s: the cause is told", r.what)
	}
}

// checkpoint makes a copy and looks into it. One that fails leaves nothing behind.
func (r *faultRun) checkpoint() error {
	err := r.db.Checkpoint(context.Background(), "copy")
	if err != nil && !r.mode.Resumes {
		return err
	}
	names, listErr := r.fs.FS.List("copy")
	if err != nil {
		if r.mode.Name == "once" {
			require.Error(r.t, listErr, "%s: %v", r.what, names)
		}
		err = errors.Join(err, r.removeCopy(names))
		return err
	}
	o := stores.RandomOptions(r.rng)
	harness.Of(o).FS = r.fs.FS
	db, openErr := kv.Open("copy", o)
	require.NoError(r.t, openErr, r.what)
	storetest.RequireContents(r.t, r.states[r.acked], db)
	require.NoError(r.t, db.Close())
	names, listErr = r.fs.FS.List("copy")
	require.NoError(r.t, listErr)
	return r.removeCopy(names)
}

func (r *faultRun) removeCopy(names []string) error {
	for _, name := range names {
		if err := r.fs.FS.Remove("copy/" + name); err != nil {
			return err
		}
	}
	_ = r.fs.FS.Remove("copy") // it may be gone
	return nil
}

// readable checks that the store answers: all that was acknowledged, and nothing
// of what failed. Where reads fail too, an error is the only other answer.
func (r *faultRun) readable() {
	for range 10 {
		n, err := r.scan()
		if err == nil {
			require.Equal(r.t, r.acked, n, r.what)
			return
		}
		require.ErrorIs(r.t, err, storetest.ErrDisk, r.what)
	}
	require.NotEqual(r.t, "writes from then on", r.mode.Name, "%s: a failed write keeps reads from going on", r.what)
	require.False(r.t, r.mode.Resumes, "%s: reads fail", r.what)
}

// scan reads the whole store and returns how many writes it has. It must be one of
// the states.
func (r *faultRun) scan() (n int, err error) {
	it, err := r.db.NewIter(nil)
	if err != nil {
		return 0, err
	}
	got := storetest.Model{}
	for ok := it.First(); ok; ok = it.Next() {
		got[string(it.Key())] = string(it.Value())
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return 0, err
	}
	if c, ok := got["count"]; ok {
		_, err = fmt.Sscan(c, &n)
		require.NoError(r.t, err)
	}
	require.Less(r.t, n, len(r.states), "%s: a write that failed is there", r.what)
	require.Equal(r.t, r.states[n], got, r.what)
	return n, nil
}

// TestFaults lets every I/O call of a history fail in turn, in every mode. Each
// history has some two thousand calls.
func TestFaults(t *testing.T) {
	t.Parallel()
	faults, calls := scale.Count(scale.Fewer(40, 12), 120), map[string]int{}
	per := len(storetest.FaultModes)
	for n, seed := 0, uint64(0); n < faults; seed++ {
		dry := newFaultRun(t, seed, storetest.FaultMode{Fails: func(vfstest.Call, int) bool { return false },
			Resumes: true}, 0)
		dry.run(120)
		total := dry.fs.Calls
		// All calls of a history if there is time for them, else some of many.
		stride := 1
		if faults < 5000 {
			stride = max(1, total*per/40)
		}
		offset := 1 + int(seed*7919)%stride
		for at := offset; at <= total && n < faults; at += stride {
			for _, mode := range storetest.FaultModes {
				r := newFaultRun(t, seed, mode, at)
				storetest.WithoutLeaks(func() { r.run(120) })
				calls[r.hit]++
				n++
			}
		}
	}
	t.Logf("%d faults: %v", faults, calls)
}

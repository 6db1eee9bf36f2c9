package powercuts

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/kv"
)

// A cut is what a power cut left of a history.
type cut struct {
	disk    *crashfs.Disk
	objects *storetest.FrozenStore // nil: the store is on the disk
	call    int                    // of those that change the disk
	synced  int                    // writes that were durable before the cut
	begun   int                    // writes that had begun
	copies  int                    // checkpoints that were finished
	slot    *delivered             // nil: there was no slot for certain
}

// A cutRun writes a random history, and cuts the power at random calls.
type cutRun struct {
	t      *testing.T
	seed   uint64
	rng    *rand.Rand
	states []storetest.Model // after each write
	opts   *kv.Options
	db     *kv.DB
	fs     vfs.FS

	objects *storetest.FrozenStore // unless nil, the store is in it, except its log

	synced, begun atomic.Int64
	copied        atomic.Int64 // checkpoints that were finished
	copies        []int        // how many writes each has, or is to have
	consumer      *consumer    // of a slot; nil: there is none
	cuts          []cut
}

// run goes through a history of steps, and then through its cuts: one before every
// stride-th call on the average. It returns how many calls there were.
func (r *cutRun) run(steps, stride int) (calls int) {
	mem := crashfs.NewDisk()
	clock := rand.New(rand.NewPCG(r.seed, 77)) // the calls' own: they come from several goroutines
	fs := crashfs.New(mem, func() error {
		calls++
		if clock.IntN(stride) == 0 {
			c := cut{call: calls, synced: int(r.synced.Load()), copies: int(r.copied.Load())}
			if r.consumer != nil {
				c.slot = r.consumer.last.Load()
			}
			c.objects = r.objects.Cut(func() { c.disk = mem.Cut(clock) })
			c.begun = int(r.begun.Load())
			r.cuts = append(r.cuts, c)
		}
		return nil
	})
	r.states = []storetest.Model{{}}
	if r.consumer != nil && r.consumer.elsewhere {
		r.open(lockedFS{fs, vfs.NewMem()})
	} else {
		r.open(fs)
	}
	for range steps {
		r.step()
	}
	require.NoError(r.t, r.db.Close())
	for _, c := range r.cuts {
		r.check(c)
	}
	return calls
}

// open opens the store with other options than before. Manifests are replaced
// often.
func (r *cutRun) open(fs vfs.FS) {
	r.opts, r.fs = stores.RandomOptions(r.rng), fs
	harness.Of(r.opts).FS, r.opts.Objects = fs, optionsIn(r.objects, r.rng)
	harness.Of(r.opts).MaxManifestSize = int64(1500 + r.rng.IntN(3000))
	stores.RandomSeparation(r.opts, r.rng)
	var err error
	r.db, err = kv.Open("db", r.opts)
	require.NoError(r.t, err)
	r.consumer.open(r)
}

// writer returns a batch or a transaction: what survives must not differ.
func (r *cutRun) writer() interface {
	kv.Writer
	SetTTL(key, value []byte, ttl time.Duration) error
	Commit(o *kv.WriteOptions) error
} {
	if r.rng.IntN(3) > 0 {
		return r.db.NewBatch()
	}
	tx, err := r.db.Begin(true)
	if err != nil {
		return r.db.NewBatch() // its Commit says why
	}
	if _, err = tx.Has([]byte("count")); err != nil { // so that there is something to validate
		require.NoError(r.t, tx.Discard())
		return r.db.NewBatch() // the disk does not read
	}
	return tx
}

// durable notes that all writes so far survive.
func (r *cutRun) durable() { r.synced.Store(int64(len(r.states) - 1)) }

func (r *cutRun) step() {
	if r.consumer != nil && r.rng.IntN(5) == 0 {
		r.consumer.step(r)
		return
	}
	switch n := r.rng.IntN(100); {
	case n < 3:
		require.NoError(r.t, r.db.Flush(context.Background()))
		r.durable()
	case n < 4:
		require.NoError(r.t, r.db.Compact(context.Background(), nil, nil))
		r.durable()
	case n < 6:
		require.NoError(r.t, r.db.Close())
		r.durable()
		r.open(r.fs)
	case n < 8:
		name := fmt.Sprintf("copy%d", len(r.copies))
		r.copies = append(r.copies, len(r.states)-1)
		require.NoError(r.t, r.db.Checkpoint(context.Background(), name))
		r.durable()
		r.copied.Add(1)
	case n < 11:
		require.NoError(r.t, r.db.Sync(context.Background()))
		r.durable()
	case n < 20:
		require.NoError(r.t, r.stream())
	default:
		require.NoError(r.t, r.write())
	}
}

// write commits a batch or a transaction that also counts itself.
func (r *cutRun) write() error {
	n := len(r.states)
	m := maps.Clone(r.states[n-1])
	b := r.writer()
	m["count"] = strconv.Itoa(n)
	require.NoError(r.t, b.Set([]byte("count"), []byte(m["count"])))
	for range r.rng.IntN(6) {
		k := fmt.Sprintf("key/%03d", r.rng.IntN(80))
		switch r.rng.IntN(10) {
		case 8:
			require.NoError(r.t, b.Merge([]byte(k), []byte("operand")))
			m.Merge(k, "operand")
		case 9:
			m[k] = string(storetest.RandomBytes(r.rng, 100))
			require.NoError(r.t, b.SetTTL([]byte(k), []byte(m[k]), time.Hour))
		case 0:
			require.NoError(r.t, b.Delete([]byte(k)))
			delete(m, k)
		case 1:
			hi := fmt.Sprintf("%s/%d", k[:6], r.rng.IntN(10))
			require.NoError(r.t, b.DeleteRange([]byte(k), []byte(hi)))
			m.DeleteRange([]byte(k), []byte(hi))
		default:
			m[k] = string(storetest.RandomBytes(r.rng, r.rng.IntN(1+r.rng.IntN(6000))))
			require.NoError(r.t, b.Set([]byte(k), []byte(m[k])))
		}
	}
	r.states = append(r.states, m)
	r.begun.Store(int64(n))
	o := []*kv.WriteOptions{kv.Sync, kv.NoSync, kv.Async}[r.rng.IntN(3)]
	err := b.Commit(o)
	if err == nil && o == kv.Sync {
		r.durable()
	}
	return err
}

// stream is write of a value that is read as it is written.
func (r *cutRun) stream() error {
	n := len(r.states)
	m := maps.Clone(r.states[n-1])
	m["count"] = fmt.Sprintf("%0*d", 1+r.rng.IntN(200), n)
	r.states = append(r.states, m)
	r.begun.Store(int64(n))
	o := []*kv.WriteOptions{kv.Sync, kv.NoSync, kv.Async}[r.rng.IntN(3)]
	err := r.db.SetReader(context.Background(), []byte("count"), int64(len(m["count"])),
		strings.NewReader(m["count"]), o)
	if err == nil && o == kv.Sync {
		r.durable()
	}
	return err
}

// check opens the store on what a cut left: it holds the first of the writes,
// and all that were durable. Then the power fails while it recovers, and it is to
// recover the same.
func (r *cutRun) check(c cut) {
	again := c
	calls, at := 0, 1+r.rng.IntN(12)
	n := r.recovered(c, func() error {
		if calls++; calls == at {
			again.objects = c.objects.Cut(func() { again.disk = c.disk.Cut(r.rng) })
		}
		return nil
	})
	if again.disk != c.disk {
		require.Equal(r.t, n, r.recovered(again, storetest.Nothing), "seed %d: a cut during recovery has lost writes",
			r.seed)
	}
	r.checkCopies(c)
}

// checkCopies opens the last checkpoints: a finished one is whole, and one that was
// cut short is no store, or whole.
func (r *cutRun) checkCopies(c cut) {
	for n := max(0, c.copies-1); n <= c.copies && n < len(r.copies); n++ {
		db, err := kv.Open(fmt.Sprintf("copy%d", n), stores.With(harness.Harness{FS: crashfs.New(c.disk,
			storetest.Nothing)}, &kv.Options{ReadOnly: true}))
		if err != nil {
			require.Equal(r.t, c.copies, n, "seed %d, cut before call %d: checkpoint %d: %v", r.seed, c.call, n, err)
			continue
		}
		storetest.RequireContents(r.t, r.states[r.copies[n]], db)
		require.NoError(r.t, storetest.Verify(db, io.Discard))
		require.NoError(r.t, db.Close())
	}
}

// recovered returns how many writes are there.
func (r *cutRun) recovered(c cut, before func() error) int {
	return r.recoveredOn(c, crashfs.New(c.disk, before))
}

func (r *cutRun) recoveredOn(c cut, fs vfs.FS) int {
	what := fmt.Sprintf("seed %d, cut before call %d: %d writes were durable, %d begun", r.seed, c.call, c.synced,
		c.begun)
	o := stores.RandomOptions(r.rng)
	harness.Of(o).FS, o.Objects = fs, optionsIn(c.objects, r.rng)
	stores.RandomSeparation(o, r.rng)
	db, err := kv.Open("db", o)
	require.NoError(r.t, err, what)
	n := 0
	if v, err := db.Get([]byte("count")); err != nil {
		require.ErrorIs(r.t, err, kv.ErrNotFound, what)
	} else {
		n, err = strconv.Atoi(string(v))
		require.NoError(r.t, err)
	}
	require.GreaterOrEqual(r.t, n, c.synced, what)
	require.LessOrEqual(r.t, n, c.begun, what)
	storetest.RequireContents(r.t, r.states[n], db)
	require.NoError(r.t, storetest.Verify(db, io.Discard), what)
	r.consumer.catchUp(r, db, c, n, what)
	require.NoError(r.t, db.Close(), what)
	return n
}

// TestPowerCut cuts the power in the middle of random histories: of writes, flushes,
// compactions, manifests that are replaced, checkpoints and openings. From
// a thousand cuts on, the power is cut before every call that changes the disk.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	want := int64(scale.Count(scale.Fewer(40, 15), 240))
	stride, histories := 1, 2
	if want < 1000 {
		stride, histories = 20, 1
	}
	var cuts, calls, lost, seeds atomic.Int64
	t.Run("histories", func(t *testing.T) {
		for range histories {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for cuts.Load() < want {
					seed := uint64(seeds.Add(1) - 1)
					r := &cutRun{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 3))}
					calls.Add(int64(r.run(100, stride)))
					require.NotEmpty(t, r.cuts, "history %d", seed)
					cuts.Add(int64(len(r.cuts)))
					for _, c := range r.cuts {
						lost.Add(int64(c.begun - c.synced))
					}
				}
			})
		}
	})
	t.Logf("%d power cuts in %d calls of %d histories, each followed by one during recovery; "+
		"%d writes were under way or not durable",
		cuts.Load(), calls.Load(), seeds.Load(), lost.Load())
}

package powercuts

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv"
)

const numCutWriters = 6

// A cutWriter counts up under a key of its own, with any level of durability. What it writes
// says how far the others were: a store that has it has them at least as far.
type cutWriter struct {
	begun   atomic.Int64
	visible atomic.Int64 // acknowledged, or failed and visible all the same
	durable atomic.Int64
	failed  []bool // writes that failed and were not visible
}

// cutWriters write beside each other to one store.
type cutWriters struct {
	all [numCutWriters]cutWriter
	db  *kv.DB
	t   *testing.T
}

func (c *cutWriters) run(steps int, seed uint64) {
	var all sync.WaitGroup
	for w := range c.all {
		rng := rand.New(rand.NewPCG(seed, uint64(w)))
		all.Go(func() {
			for range steps {
				c.write(w, rng)
			}
		})
	}
	all.Wait()
}

func (c *cutWriters) write(n int, rng *rand.Rand) {
	w := &c.all[n]
	i := w.begun.Add(1)
	b := c.db.NewBatch()
	var seen []byte
	for o := range c.all {
		seen = kv.AppendInt64(seen, c.all[o].visible.Load())
	}
	_ = b.Set([]byte{byte(n)}, kv.AppendInt64(nil, i)) // Commit returns the error
	_ = b.Set([]byte{byte(n), 's'}, seen)
	_ = b.Set(fmt.Appendf(nil, "%c%06d", n, i), make([]byte, rng.IntN(2000)))
	level := []*kv.WriteOptions{kv.Sync, kv.NoSync, kv.Async}[rng.IntN(3)]
	err := b.Commit(level)
	w.failed = append(w.failed, err != nil && !errors.Is(err, kv.ErrNotDurable))
	if err == nil && level == kv.Sync {
		w.durable.Store(i)
	}
	if err == nil || errors.Is(err, kv.ErrNotDurable) {
		w.visible.Store(i)
	}
	if visible := w.visible.Load(); err == nil && rng.IntN(8) == 0 {
		if err = c.db.Sync(context.Background()); err == nil {
			w.durable.Store(visible)
		}
	}
	if err != nil {
		stores.UntilResumed(c.db)
	}
}

// A writersCut is what a power cut left, and how far the writers were.
type writersCut struct {
	disk           *crashfs.Disk
	durable, begun [numCutWriters]int64
}

func (c *cutWriters) cut(mem *crashfs.Disk, rng *rand.Rand) (cut writersCut) {
	for w := range c.all {
		cut.durable[w] = c.all[w].durable.Load()
	}
	cut.disk = mem.Cut(rng)
	for w := range c.all {
		cut.begun[w] = c.all[w].begun.Load()
	}
	return cut
}

// check opens what a cut left: it has a prefix of history, with all that was durable.
func (c *cutWriters) check(cut writersCut) {
	db, err := kv.Open("db", stores.With(harness.Harness{FS: crashfs.New(cut.disk, storetest.Nothing)},
		&kv.Options{MemtableSize: 64 << 10,
			CacheSize: -1}))
	require.NoError(c.t, err)
	var has [numCutWriters]int64
	number := func(key ...byte) []byte {
		v, err := db.Get(key)
		if !errors.Is(err, kv.ErrNotFound) {
			require.NoError(c.t, err)
		}
		return v
	}
	for w := range has {
		if v := number(byte(w)); v != nil {
			has[w], err = kv.Int64(v)
			require.NoError(c.t, err)
		}
		require.GreaterOrEqual(c.t, has[w], cut.durable[w])
		require.LessOrEqual(c.t, has[w], cut.begun[w])
		for i := int64(1); i <= has[w]+1; i++ {
			there, err := db.Has(fmt.Appendf(nil, "%c%06d", w, i))
			require.NoError(c.t, err)
			mayHave := i <= has[w] && (!c.all[w].failed[i-1] || i == has[w])
			require.Equal(c.t, mayHave, there, "write %d of %d, has %d", i, w, has[w])
		}
	}
	for w := range has {
		for o, seen := 0, number(byte(w), 's'); len(seen) > 0; o, seen = o+1, seen[8:] {
			n, err := kv.Int64(seen[:8])
			require.NoError(c.t, err)
			require.GreaterOrEqual(c.t, has[o], n, "a hole: writer %d is further than it can be without it", w)
		}
	}
	require.NoError(c.t, db.Close())
}

// TestPowerCutBesideWriters cuts the power while several writers write at all levels, and
// while syncs and writes fail and the store resumes: what is left has no hole, and nothing
// that failed and was not visible comes back once later writes were acknowledged.
func TestPowerCutBesideWriters(t *testing.T) {
	t.Parallel()
	cuts, failures := 0, uint64(0)
	for seed := range uint64(max(scale.Count(6, 12), 4)) {
		rng := rand.New(rand.NewPCG(seed, 31)) // the calls' own
		mem := crashfs.NewDisk()
		c := &cutWriters{t: t}
		var all []writersCut
		crash := crashfs.New(mem, func() error {
			if rng.IntN(40) == 0 {
				all = append(all, c.cut(mem, rng))
			}
			return nil
		})
		f := &vfstest.FaultFS{FS: vfstest.YieldingFS{FS: crash}}
		o := stores.With(harness.Harness{FS: f, Backoff: storetest.Quick},
			&kv.Options{MemtableSize: 64 << 10, CacheSize: -1})
		var err error
		c.db, err = kv.Open("db", o)
		require.NoError(t, err)
		faults := rand.New(rand.NewPCG(seed, 32))
		f.Set(func(call vfstest.Call) (int, error) {
			if seed%2 == 0 || call.Op != "sync" && call.Op != "write" || faults.IntN(60) > 0 {
				return 0, nil
			}
			return faults.IntN(call.Bytes + 1), storetest.ErrDisk
		})
		c.run(60, seed)
		f.Set(nil)
		stores.UntilResumed(c.db)
		failures += c.db.Metrics().Failures
		for w := range c.all {
			for i, failed := range c.all[w].failed {
				there, err := c.db.Has(fmt.Appendf(nil, "%c%06d", w, i+1))
				require.NoError(t, err)
				require.Equal(t, !failed, there, "seed %d: write %d of %d", seed, i+1, w)
			}
		}
		require.NoError(t, c.db.Close())
		for w := range c.all {
			c.all[w].durable.Store(c.all[w].visible.Load())
		}
		for _, cut := range append(all, c.cut(mem, rng)) {
			c.check(cut)
			cuts++
		}
	}
	require.NotZero(t, failures)
	t.Logf("%d power cuts, the store failed %d times", cuts, failures)
}

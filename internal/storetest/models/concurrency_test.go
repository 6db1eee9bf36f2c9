package models

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/metrics"
	"github.com/stretchr/testify/require"
)

// A stressRun has writers that count up, each in keys of its own, and readers
// that must never see a count go back, or one half of a batch.
type stressRun struct {
	t       *testing.T
	db      *kv.DB
	done    atomic.Bool
	highest [stressKeys]atomic.Int64 // what has been acknowledged
}

const (
	stressWriters = 4
	stressKeys    = 40
)

func (r *stressRun) keys(n int) (a, b []byte) {
	return fmt.Appendf(nil, "first/%02d", n), fmt.Appendf(nil, "second/%02d", n)
}

func (r *stressRun) write(w int) {
	writes := scale.Count(200, 1500)
	rng := rand.New(rand.NewPCG(uint64(w), 5))
	pad := bytes.Repeat([]byte("x"), 400)
	for i := 1; i <= writes; i++ {
		n := w + stressWriters*rng.IntN(stressKeys/stressWriters)
		first, second := r.keys(n)
		v := append(strconv.AppendInt(nil, int64(i), 10), ' ')
		v = append(v, pad[:rng.IntN(len(pad))]...)
		b := r.db.NewBatch()
		if i%20 == 0 { // what follows in the batch is newer
			require.NoError(r.t, b.DeleteRange(first, append(first, 'x')))
			require.NoError(r.t, b.Delete(second))
		}
		require.NoError(r.t, b.Set(first, v))
		require.NoError(r.t, b.Set(second, v))
		require.NoError(r.t, b.Commit([]*kv.WriteOptions{kv.Sync, kv.NoSync, kv.Async}[rng.IntN(3)]))
		r.highest[n].Store(int64(i))
	}
}

// read looks keys up until the writers are done.
func (r *stressRun) read(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 6))
	for !r.done.Load() {
		n := rng.IntN(stressKeys)
		key, _ := r.keys(n)
		least := r.highest[n].Load()
		v, err := r.db.Get(key)
		if least > 0 || err == nil {
			storetest.Fine(r.t, err)
			if seen := storetest.LeadingNumber(r.t, v); seen < least {
				require.GreaterOrEqual(r.t, seen, least, "an acknowledged write of %q is not seen", key)
			}
		}
	}
}

// scan compares the halves of every batch, in a snapshot and an iterator, both
// ways.
func (r *stressRun) scan(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	for !r.done.Load() {
		s := r.db.NewSnapshot()
		var reader kv.Reader = s
		if rng.IntN(2) == 0 {
			reader = r.db
		}
		it, err := reader.NewIter(nil)
		require.NoError(r.t, err)
		counts := map[string]int64{}
		start, move := it.First, it.Next
		if rng.IntN(2) == 0 {
			start, move = it.Last, it.Prev
		}
		for ok := start(); ok; ok = move() {
			counts[string(it.Key())] = storetest.LeadingNumber(r.t, it.Value())
		}
		require.NoError(r.t, it.Close())
		for n := range stressKeys {
			first, second := r.keys(n)
			require.Equal(r.t, counts[string(first)], counts[string(second)], "half a batch of %q", first)
			a, errA := s.Get(first)
			b, errB := s.Get(second)
			require.Equal(r.t, errA, errB)
			require.Equal(r.t, a, b)
		}
		require.NoError(r.t, s.Close())
	}
}

// disturb flushes, compacts, asks for metrics and explanations.
func (r *stressRun) disturb() {
	for i := 0; !r.done.Load(); i++ {
		lo, hi := r.keys(i % stressKeys)
		switch i % 4 {
		case 0:
			require.NoError(r.t, r.db.Flush(context.Background()))
		case 1:
			require.NoError(r.t, r.db.Compact(context.Background(), lo, hi))
		case 2:
			checkRunningIdentities(r.t, r.db.Metrics())
		default:
			_, err := r.db.Explain(lo)
			require.NoError(r.t, err)
		}
	}
}

// checkRunningIdentities holds those figures together that are derived from one
// reading of the counters.
func checkRunningIdentities(t *testing.T, m *metrics.Store) {
	t.Helper()
	c := m.Lookup()
	require.Equal(t, c.IndexLookups, c.Unfiltered+c.FilterTruePositives+c.FilterFalsePositives)
	require.Equal(t, c.FilesConsidered, c.RuledOutByBounds+c.RuledOutByRangeTombstone+c.FilterChecks()+c.Unfiltered)
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	for seed := range uint64(scale.Count(1, 3)) {
		o := stores.RandomOptions(rand.New(rand.NewPCG(seed, 8)))
		o.InMemory = true
		db, err := kv.Open("db", o)
		require.NoError(t, err)
		r := &stressRun{t: t, db: db}
		var writers, others sync.WaitGroup
		for w := range stressWriters {
			writers.Go(func() { r.write(w) })
		}
		others.Go(r.disturb)
		for i := range uint64(2) {
			others.Go(func() { r.read(10*seed + i) })
			others.Go(func() { r.scan(10*seed + i) })
		}
		writers.Wait()
		r.done.Store(true)
		others.Wait()
		for n := range stressKeys {
			first, _ := r.keys(n)
			v, err := db.Get(first)
			require.NoError(t, err)
			require.Equal(t, r.highest[n].Load(), storetest.LeadingNumber(t, v))
		}
		storetest.RequireIdentities(t, db.Metrics())
		require.NoError(t, db.Close())
	}
}

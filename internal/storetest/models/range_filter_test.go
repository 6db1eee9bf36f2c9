package models

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/siftkv/siftkv/internal/exactranges"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/kv"
	"github.com/stretchr/testify/require"
)

// A rangeRun drives a store whose scans are filtered, and a model of it.
type rangeRun struct {
	t   *testing.T
	rng *rand.Rand
	db  *kv.DB
	m   storetest.Model
}

// key is one of few, which share beginnings, begin with each other, and have the least and greatest bytes.
func (r *rangeRun) key() []byte {
	const alphabet = "\x00\x00ab\xfe\xff\xff"
	k := []byte([]string{"", "p/", "p/q/", "\xff", "\x00"}[r.rng.IntN(5)])
	for range r.rng.IntN(5) {
		k = append(k, alphabet[r.rng.IntN(len(alphabet))])
	}
	return k
}

// write changes the store and the model.
func (r *rangeRun) write() {
	for range 1 + r.rng.IntN(150) {
		k := r.key()
		switch n := r.rng.IntN(20); {
		case n == 0:
			lo, hi := r.key(), r.key()
			if bytes.Compare(lo, hi) < 0 {
				require.NoError(r.t, r.db.DeleteRange(lo, hi, kv.NoSync))
				r.m.DeleteRange(lo, hi)
			}
		case n < 5:
			require.NoError(r.t, r.db.Delete(k, kv.NoSync))
			r.m.Delete(string(k))
		case n < 8:
			require.NoError(r.t, r.db.Merge(k, []byte("+"), kv.NoSync))
			r.m.Merge(string(k), "+")
		default:
			v := string(storetest.RandomBytes(r.rng, r.rng.IntN(400)))
			require.NoError(r.t, r.db.Set(k, []byte(v), kv.NoSync))
			r.m.Set(string(k), v)
		}
	}
	switch r.rng.IntN(6) {
	case 0:
		require.NoError(r.t, r.db.Compact(context.Background(), nil, nil))
	case 1:
	default:
		require.NoError(r.t, r.db.Flush(context.Background()))
	}
}

// bounds are any, none and empty ones among them.
func (r *rangeRun) bounds() *kv.IterOptions {
	o := &kv.IterOptions{KeysOnly: r.rng.IntN(4) == 0}
	if r.rng.IntN(5) > 0 {
		o.LowerBound = r.key()
	}
	if r.rng.IntN(5) > 0 {
		o.UpperBound = r.key()
	}
	if r.rng.IntN(5) == 0 { // between two keys that may be neighbours
		o.LowerBound = r.key()
		o.UpperBound = append(bytes.Clone(o.LowerBound), "\x00\xff"[r.rng.IntN(2)])
	}
	if r.rng.IntN(6) == 0 {
		o.Prefix = []byte("p/")
	}
	return o
}

// walk moves an iterator of a reader as chance has it: to and fro, and round.
func (r *rangeRun) walk(db kv.Reader, m storetest.Model) {
	o := r.bounds()
	it, err := db.NewIter(o)
	require.NoError(r.t, err)
	var keys []string
	for _, k := range m.Keys() {
		if k >= string(o.LowerBound) && (o.UpperBound == nil || k < string(o.UpperBound)) &&
			bytes.HasPrefix([]byte(k), o.Prefix) {
			keys = append(keys, k)
		}
	}
	at := -1
	moved := func(ok bool, what string) {
		require.NoError(r.t, it.Error())
		require.Equal(r.t, at >= 0 && at < len(keys), ok, "%s to %d of %q within %q", what, at, keys, o)
		if ok {
			require.Equal(r.t, keys[at], string(it.Key()), what)
		}
		if ok && !o.KeysOnly {
			require.Equal(r.t, m[keys[at]], string(it.Value()), what)
		}
	}
	for range 12 {
		k := r.key()
		from, _ := slices.BinarySearch(keys, string(k))
		switch r.rng.IntN(4) {
		case 0:
			at = 0
			moved(it.First(), "First")
		case 1:
			at = len(keys) - 1
			moved(it.Last(), "Last")
		case 2:
			at = from
			moved(it.SeekGE(k), fmt.Sprintf("SeekGE %q", k))
		case 3:
			at = from - 1
			moved(it.SeekLT(k), fmt.Sprintf("SeekLT %q", k))
		}
		for it.Valid() && r.rng.IntN(6) > 0 {
			if r.rng.IntN(2) == 0 {
				at++
				moved(it.Next(), "Next")
			} else {
				at--
				moved(it.Prev(), "Prev")
			}
		}
	}
	require.NoError(r.t, it.Close())
}

// walkInTx walks a transaction that has writes of its own.
func (r *rangeRun) walkInTx() {
	tx, err := r.db.Begin(true)
	require.NoError(r.t, err)
	own := storetest.Model{}
	maps.Copy(own, r.m)
	for range r.rng.IntN(10) {
		k := r.key()
		if r.rng.IntN(3) == 0 {
			require.NoError(r.t, tx.Delete(k))
			own.Delete(string(k))
			continue
		}
		require.NoError(r.t, tx.Set(k, []byte("own")))
		own.Set(string(k), "own")
	}
	r.walk(tx, own)
	require.NoError(r.t, tx.Discard())
}

// Whatever the bounds, whichever way an iterator goes, a filter takes nothing away: not keys, not what
// deletes them, not after a turn, not in the tables behind one that was denied.
func TestRangeFiltersTakeNothingAway(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "iterators of one goroutine")
	seeds := scale.Count(6, 120)
	for _, policy := range storetest.RangePolicies(t) {
		denied := uint64(0)
		for seed := range uint64(seeds) {
			rng := rand.New(rand.NewPCG(seed, 16))
			o := stores.RandomOptions(rng)
			o.RangeFilter, o.RangeFilterLastLevel = policy, rng.IntN(2) == 0
			o.MemoryLimit, o.L0CompactionThreshold, o.L0SlowdownThreshold = 0, 1+rng.IntN(20), 100
			stores.RandomSeparation(o, rng)
			r := &rangeRun{t: t, rng: rng, db: openMem(t, o), m: storetest.Model{}}
			var snap *kv.Snapshot
			var past storetest.Model
			for range 1 + rng.IntN(12) {
				if r.write(); snap == nil && rng.IntN(3) == 0 {
					snap, past = r.db.NewSnapshot(), storetest.Model{}
					maps.Copy(past, r.m)
				}
			}
			for range 30 {
				r.walk(r.db, r.m)
				if snap != nil {
					r.walk(snap, past)
				}
				r.walkInTx()
			}
			scans := r.db.Metrics().Scans()
			require.Equal(t, scans.Files, scans.DeniedByPrefix+scans.DeniedByRange+scans.Empty+scans.WithEntries)
			if policy == (exactranges.Policy{}) { // but where it is asked for a key of which the versions are passed
				require.LessOrEqual(t, scans.RangeFalsePositives, scans.Files/100)
			}
			denied += scans.DeniedByRange
			if snap != nil {
				require.NoError(t, snap.Close())
			}
			require.NoError(t, r.db.Close())
		}
		require.Greater(t, denied, uint64(10*seeds), "filters were at work")
	}
}

// openMem opens a store of its own in memory, closed at the end of the test.
func openMem(tb testing.TB, o *kv.Options) *kv.DB {
	tb.Helper()
	var opts kv.Options
	if o != nil {
		opts = *o
	}
	opts.InMemory = true
	db := stores.OpenDir(tb, "db", &opts)
	stores.CloseAtEnd(tb, db)
	return db
}

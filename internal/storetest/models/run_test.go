package models

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/stretchr/testify/require"
)

// A modelRun drives a store and its model side by side.
type modelRun struct {
	t    *testing.T
	rng  *rand.Rand
	fs   vfs.FS
	opts *kv.Options
	db   *kv.DB
	m    modelStore

	objects   objstore.Store // unless nil, the store is in it
	localLog  bool           // except its log, which is in fs
	part      int            // objectdir.Params.PartSize
	separated bool           // values are separated

	clock *storetest.Clock
	snaps []modelSnapshot
	iters []*modelIter
}

type modelSnapshot struct {
	s *kv.Snapshot
	m modelStore
}

type modelIter struct {
	it     *kv.Iterator
	bounds kv.IterOptions
	m      modelStore
	at     string // the key that it is on
	on     bool
}

// keys returns what the iterator may come to now.
func (i *modelIter) keys(now uint64) []string {
	return slices.DeleteFunc(i.m.At(now).Keys(), func(k string) bool {
		return !strings.HasPrefix(k, string(i.bounds.Prefix)) ||
			i.bounds.LowerBound != nil && k < string(i.bounds.LowerBound) ||
			i.bounds.UpperBound != nil && k >= string(i.bounds.UpperBound)
	})
}

func (r *modelRun) open() {
	harness.Of(r.opts).FS = r.fs
	if r.objects != nil {
		r.opts.Objects = &objects.Config{Store: r.objects, Grace: -1, LocalLog: r.localLog}
		harness.Of(r.opts).TuneObjects = func(p *objectdir.Params) {
			storetest.ManyEdits(p)
			p.PartSize = r.part
		}
	}
	r.opts.Clock = r.clock.Time
	if r.separated {
		stores.RandomSeparation(r.opts, r.rng)
	}
	db, err := kv.Open("db", r.opts)
	require.NoError(r.t, err)
	r.db = db
}

func (r *modelRun) key() []byte {
	n := r.rng.IntN(400)
	return fmt.Appendf(nil, "%s%04d", []string{"", "user/", "zz"}[n%3],
		n)[:2+r.rng.IntN(8)%(4+len([]string{"", "user/", "zz"}[n%3])-1)]
}

func (r *modelRun) value() []byte {
	n := r.rng.IntN(100)
	if r.rng.IntN(30) == 0 {
		n = r.rng.IntN(5000)
	}
	return bytes.Repeat([]byte{byte('a' + r.rng.IntN(26))}, n)
}

// operand is short: operands pile up.
func (r *modelRun) operand() []byte { return fmt.Appendf(nil, "%d", r.rng.IntN(1000)) }

// ttl is a time that the clock comes to soon, as a rule.
func (r *modelRun) ttl() time.Duration {
	return time.Duration(1+r.rng.IntN(1000)) * time.Duration([]int64{1, 1e3, 1e6, 1e9}[r.rng.IntN(4)])
}

func (r *modelRun) bound() []byte {
	if r.rng.IntN(4) == 0 {
		return nil
	}
	return r.key()
}

func (r *modelRun) durability() *kv.WriteOptions {
	return []*kv.WriteOptions{nil, kv.Sync, kv.NoSync, kv.Async}[r.rng.IntN(4)]
}

// step does one random operation.
func (r *modelRun) step() {
	switch n := r.rng.IntN(100); {
	case n < 13:
		k, v := r.key(), r.value()
		if n%3 == 0 {
			require.NoError(r.t, r.db.SetReader(context.Background(), k, int64(len(v)), bytes.NewReader(v),
				r.durability()))
		} else {
			require.NoError(r.t, r.db.Set(k, v, r.durability()))
		}
		r.m.Set(string(k), string(v))
	case n < 20:
		k, times := r.key(), 1
		if r.rng.IntN(8) == 0 {
			times = r.rng.IntN(80) // often enough for the memtable to make folds
		}
		for range times {
			v := r.operand()
			require.NoError(r.t, r.db.Merge(k, v, r.durability()))
			r.m.Merge(string(k), string(v))
		}
	case n < 23:
		k, v, ttl := r.key(), r.value(), r.ttl()
		require.NoError(r.t, r.db.SetTTL(k, v, ttl, r.durability()))
		r.m.SetTTL(string(k), string(v), r.expiry(ttl))
	case n < 24:
		k, v, expiry := r.key(), r.value(), r.until()
		require.NoError(r.t, r.db.SetUntil(k, v, expiry, r.durability()))
		r.m.SetUntil(string(k), string(v), expiry)
	case n < 25:
		r.clock.Advance(r.ttl())
	case n < 33:
		k := r.key()
		require.NoError(r.t, r.db.Delete(k, r.durability()))
		delete(r.m, string(k))
	case n < 36:
		lo, hi := r.bound(), r.bound()
		if r.rng.IntN(10) > 0 { // mostly narrow ranges
			lo = r.key()
			hi = append(bytes.Clone(lo), 0xff)
		}
		require.NoError(r.t, r.db.DeleteRange(lo, hi, r.durability()))
		r.m.DeleteRange(lo, hi)
	case n < 46:
		r.batch()
	case n < 65:
		r.check(r.db, r.m, r.key())
	case n < 68:
		if len(r.snaps) < 4 {
			r.snaps = append(r.snaps, modelSnapshot{r.db.NewSnapshot(), maps.Clone(r.m)})
		} else {
			i := r.rng.IntN(len(r.snaps))
			require.NoError(r.t, r.snaps[i].s.Close())
			r.snaps = slices.Delete(r.snaps, i, i+1)
		}
	case n < 73 && len(r.snaps) > 0:
		s := r.snaps[r.rng.IntN(len(r.snaps))]
		r.check(s.s, s.m, r.key())
	case n < 78:
		r.newIter()
	case n < 95 && len(r.iters) > 0:
		for range 5 {
			r.iters[r.rng.IntN(len(r.iters))].move(r)
		}
	case n < 96:
		require.NoError(r.t, r.db.Flush(context.Background()))
	case n < 97:
		require.NoError(r.t, r.db.Sync(context.Background()))
	case n < 98:
		lo, hi := r.bound(), r.bound()
		require.NoError(r.t, r.db.Compact(context.Background(), lo, hi))
	case n < 99:
		r.reopen()
	}
}

func (r *modelRun) expiry(ttl time.Duration) uint64 {
	return uint64(r.clock.Time().Add(ttl).UnixMicro())
}

func (r *modelRun) check(db kv.Reader, m modelStore, k []byte) {
	want, present := m.Get(string(k), r.clock.Now())
	v, err := db.Get(k)
	if !present {
		require.ErrorIs(r.t, err, kv.ErrNotFound, "%q", k)
	} else {
		require.NoError(r.t, err, "%q", k)
		require.Equal(r.t, want, string(v))
	}
	ok, err := db.Has(k)
	require.NoError(r.t, err)
	require.Equal(r.t, present, ok)
	r.checkWithoutValue(db, m, k)
}

func (r *modelRun) newIter() {
	if len(r.iters) >= 3 {
		require.NoError(r.t, r.iters[0].it.Close())
		r.iters = r.iters[1:]
	}
	var db kv.Reader = r.db
	m := r.m
	if len(r.snaps) > 0 && r.rng.IntN(2) == 0 {
		s := r.snaps[r.rng.IntN(len(r.snaps))]
		db, m = s.s, s.m
	}
	r.iters = append(r.iters, r.iterOf(db, m))
}

// iterOf opens an iterator with random bounds over a reader that has what m has.
func (r *modelRun) iterOf(db kv.Reader, m modelStore) *modelIter {
	o := &kv.IterOptions{LowerBound: r.bound(), UpperBound: r.bound()}
	if o.LowerBound != nil && r.rng.IntN(2) == 0 { // often within one prefix
		o.UpperBound = append(bytes.Clone(o.LowerBound), 0xff)
	}
	r.drawKinds(o)
	it, err := db.NewIter(o)
	require.NoError(r.t, err)
	return &modelIter{it: it, m: maps.Clone(m), bounds: *o}
}

// move moves an iterator at random and compares where it is.
func (i *modelIter) move(r *modelRun) {
	var ok bool
	k := r.key()
	keys := i.keys(r.clock.Now())
	at, found := slices.BinarySearch(keys, i.at)
	var pos int
	switch n := r.rng.IntN(12); {
	case n == 0:
		ok, pos = i.it.First(), 0
	case n == 1:
		ok, pos = i.it.Last(), len(keys)-1
	case n == 2:
		ok, pos = i.it.SeekGE(k), sort.SearchStrings(keys, string(k))
	case n == 3:
		ok, pos = i.it.SeekLT(k), sort.SearchStrings(keys, string(k))-1
	case n < 8:
		ok = i.it.Next()
		if pos = at; found { // else the key that it was on has expired
			pos++
		}
		if !i.on {
			pos = -1
		}
	default:
		ok = i.it.Prev()
		if pos = at - 1; !i.on {
			pos = -1
		}
	}
	require.NoError(r.t, i.it.Error())
	i.on = pos >= 0 && pos < len(keys)
	require.Equal(r.t, i.on, ok)
	require.Equal(r.t, ok, i.it.Valid())
	if ok {
		i.at = keys[pos]
		require.Equal(r.t, i.at, string(i.it.Key()))
		i.requireEntry(r)
	}
}

func (r *modelRun) release() {
	for _, i := range r.iters {
		require.NoError(r.t, i.it.Close())
	}
	for _, s := range r.snaps {
		require.NoError(r.t, s.s.Close())
	}
	r.iters, r.snaps = nil, nil
}

func (r *modelRun) reopen() {
	r.release()
	require.NoError(r.t, r.db.Close())
	r.opts = stores.RandomOptions(r.rng)
	r.open()
}

// checkAll compares the whole store, forward and backward, and verifies it.
func (r *modelRun) checkAll() {
	it, err := r.db.NewIter(nil)
	require.NoError(r.t, err)
	m := r.m.At(r.clock.Now())
	keys := m.Keys()
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		require.Equal(r.t, keys[n], string(it.Key()))
		require.Equal(r.t, m[keys[n]], string(it.Value()))
		n++
	}
	require.Equal(r.t, len(keys), n)
	for ok := it.Last(); ok; ok = it.Prev() {
		n--
		require.Equal(r.t, keys[n], string(it.Key()))
		require.Equal(r.t, m[keys[n]], string(it.Value()))
	}
	require.Zero(r.t, n)
	require.NoError(r.t, it.Error())
	require.NoError(r.t, it.Close())
	r.checkLoops(r.db, r.m)
	r.checkTx()
	var out bytes.Buffer
	require.NoError(r.t, storetest.Verify(r.db, &out), out.String())
	storetest.RequireIdentities(r.t, r.db.Metrics())
}

func TestModel(t *testing.T) {
	t.Parallel()
	modelHistories(t, storetest.ModelSeeds, 2026, func(r *modelRun) { r.fs = vfs.NewMem() })
}

// Values of any length are separated, or those from a length on, or no others than before: from one open
// to the next that changes.
func TestModelWithSeparatedValues(t *testing.T) {
	t.Parallel()
	modelHistories(t, storetest.ModelSeeds, 2027, func(r *modelRun) { r.fs, r.separated = vfs.NewMem(), true })
}

// modelHistories drives n new stores through random operations, each in the place that it is given.
func modelHistories(t *testing.T, seeds, salt uint64, place func(*modelRun)) {
	t.Helper()
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, salt))
		r := &modelRun{
			t:     t,
			rng:   rng,
			opts:  stores.RandomOptions(rng),
			m:     modelStore{},
			clock: &storetest.Clock{},
		}
		place(r)
		r.open()
		if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r.t = t
			for range 400 {
				if r.step(); r.separated {
					require.NoError(t, storetest.RecountBlobs(r.db))
				}
			}
			r.checkAll()
			r.reopen()
			r.checkAll()
			require.NoError(t, r.db.Compact(t.Context(), nil, nil))
			r.checkAll()
		}) {
			return
		}
		r.release()
		if harness.Settle(r.db); r.separated {
			storetest.RequireBlobs(t, r.db)
		}
		require.NoError(t, r.db.Close())
	}
}

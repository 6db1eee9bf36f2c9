package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	pebblevfs "github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/budget"
	"github.com/siftkv/siftkv/internal/exactranges"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// A pebbleRun does the same to a store and to Pebble, and compares the answers.
type pebbleRun struct {
	t    *testing.T
	rng  *rand.Rand
	ours *kv.DB
	peer *pebble.DB
	fs   vfs.FS
	disk *pebblevfs.MemFS

	snaps []pairOfSnapshots
	iters []pairOfIterators
}

type pairOfSnapshots struct {
	ours *kv.Snapshot
	peer *pebble.Snapshot
}

type pairOfIterators struct {
	ours *kv.Iterator
	peer *pebble.Iterator
}

func (r *pebbleRun) open() {
	var err error
	r.ours, err = kv.Open("db", r.options())
	require.NoError(r.t, err)
	r.peer, err = pebble.Open("db", &pebble.Options{FS: r.disk, MemTableSize: 64 << 10, Logger: &pebbleLog{}})
	require.NoError(r.t, err)
}

// options returns options of a small store that change whenever it is opened.
func (r *pebbleRun) options() *kv.Options {
	specs := []string{"none", "bloom:10", "blocked:4", "cuckoo:12", "salted:blocked:4"}
	filter, err := filterpolicy.Parse(specs[r.rng.IntN(len(specs))])
	require.NoError(r.t, err)
	o := &kv.Options{
		CacheSize:                []int64{-1, 16 << 10, 8 << 20}[r.rng.IntN(3)],
		MemtableSize:             64 << 10,
		MaxMemtables:             2 + r.rng.IntN(3),
		BlockSize:                64 + r.rng.IntN(1000),
		Compression:              sstable.Compression(r.rng.IntN(4)),
		Compaction:               []kv.CompactionStyle{kv.Leveled, kv.Tiered, kv.LazyLeveled}[r.rng.IntN(3)],
		Filter:                   filter,
		TargetFileSize:           16 << 10,
		BaseLevelSize:            int64(16+r.rng.IntN(100)) << 10,
		L0CompactionThreshold:    1 + r.rng.IntN(4),
		MaxConcurrentCompactions: 1 + r.rng.IntN(3),
		SeparateFrom:             []int{0, 100, 1000}[r.rng.IntN(3)],
		SpaceAmplification:       []float64{0, 1.1, 2}[r.rng.IntN(3)],
		RunsPerLevel:             2 + r.rng.IntN(3),
		FalsePositiveMemory:      []int64{0, -1, budget.MinFalsePositives}[r.rng.IntN(3)],
	}
	if r.rng.IntN(4) == 0 {
		o.MemoryLimit = 4 << 20
	}
	if r.rng.IntN(4) == 0 {
		o.LevelCompression[1+r.rng.IntN(kv.NumLevels-1)] = sstable.Zstd
	}
	if r.rng.IntN(4) == 0 {
		o.FilterBudget = int64(1 + r.rng.IntN(2000))
	}
	if name := []string{"", "fixed:2", "fixed:6", "delimiter:/", "delimiter:0"}[r.rng.IntN(5)]; name != "" {
		o.Prefix, err = filterpolicy.ParsePrefix(name)
		require.NoError(r.t, err)
		o.PrefixOnly = r.rng.IntN(3) == 0
	}
	if r.rng.IntN(2) == 0 {
		o.RangeFilter, o.RangeFilterLastLevel = exactranges.Policy{}, r.rng.IntN(2) == 0
	}
	*harness.Of(o) = harness.Harness{FS: r.fs, RangeSize: []int64{0, 500, 5000}[r.rng.IntN(3)]}
	return o
}

func (r *pebbleRun) close() {
	for _, i := range r.iters {
		require.NoError(r.t, i.ours.Close())
		require.NoError(r.t, i.peer.Close())
	}
	for _, s := range r.snaps {
		require.NoError(r.t, s.ours.Close())
		require.NoError(r.t, s.peer.Close())
	}
	r.iters, r.snaps = nil, nil
	require.NoError(r.t, r.ours.Close())
	require.NoError(r.t, r.peer.Close())
}

// key returns one of a few hundred keys, some of which are prefixes of others.
// None is empty: Pebble's checks, which the race detector turns on, do not seek
// to the empty key.
func (r *pebbleRun) key() []byte {
	k := fmt.Appendf(nil, "%03d/%02d", r.rng.IntN(30), r.rng.IntN(20))
	return k[:1+r.rng.IntN(len(k))]
}

func (r *pebbleRun) span() (lo, hi []byte) {
	lo, hi = r.key(), r.key()
	if bytes.Compare(lo, hi) > 0 {
		lo, hi = hi, lo
	}
	return lo, hi
}

func (r *pebbleRun) value() []byte {
	v := make([]byte, r.rng.IntN(1+r.rng.IntN(1500)))
	for i := range v {
		v[i] = byte(r.rng.Uint32())
	}
	return v
}

// writer is what our batch and Pebble's have in common.
type writer struct {
	set      func(k, v []byte) error
	del      func(k []byte) error
	delRange func(lo, hi []byte) error
}

// write does one random write on all of them.
func (r *pebbleRun) write(ws ...writer) {
	k, v := r.key(), r.value()
	lo, hi := r.span()
	n := r.rng.IntN(20)
	for _, w := range ws {
		switch {
		case n < 13:
			require.NoError(r.t, w.set(k, v))
		case n < 18:
			require.NoError(r.t, w.del(k))
		case n < 19:
			require.NoError(r.t, w.delRange(k, append(bytes.Clone(k), '5')))
		default:
			require.NoError(r.t, w.delRange(lo, hi))
		}
	}
}

// batch commits some writes together; a single one as well, for want of a
// difference.
func (r *pebbleRun) batch(writes int) {
	ours, peer := r.ours.NewBatch(), r.peer.NewBatch()
	for range writes {
		r.write(
			writer{ours.Set, ours.Delete, ours.DeleteRange},
			writer{
				func(k, v []byte) error { return peer.Set(k, v, nil) },
				func(k []byte) error { return peer.Delete(k, nil) },
				func(lo, hi []byte) error { return peer.DeleteRange(lo, hi, nil) },
			})
	}
	require.NoError(r.t, ours.Commit([]*kv.WriteOptions{kv.Sync, kv.NoSync, kv.Async}[r.rng.IntN(3)]))
	require.NoError(r.t, peer.Commit(pebble.NoSync))
}

func (r *pebbleRun) step() {
	switch n := r.rng.IntN(100); {
	case n < 30:
		r.batch(1)
	case n < 42:
		r.batch(1 + r.rng.IntN(30))
	case n < 55:
		r.get(r.ours, r.peer)
	case n < 60 && len(r.snaps) > 0:
		s := r.snaps[r.rng.IntN(len(r.snaps))]
		r.get(s.ours, s.peer)
	case n < 63:
		r.snapshot()
	case n < 68:
		r.newIter()
	case n < 92 && len(r.iters) > 0:
		i := r.iters[r.rng.IntN(len(r.iters))]
		for range 8 {
			r.move(i)
		}
	case n < 95:
		require.NoError(r.t, r.ours.Flush(context.Background()))
		require.NoError(r.t, r.peer.Flush())
	case n < 97:
		lo, hi := r.span()
		require.NoError(r.t, r.ours.Compact(context.Background(), lo, hi))
		if !bytes.Equal(lo, hi) { // Pebble refuses an empty span
			require.NoError(r.t, r.peer.Compact(r.t.Context(), lo, hi, false))
		}
	case n < 98:
		r.close()
		r.open()
	}
}

func (r *pebbleRun) get(ours kv.Reader, peer pebble.Reader) {
	k := r.key()
	got, err := ours.Get(k)
	want, closer, peerErr := peer.Get(k)
	if errors.Is(peerErr, pebble.ErrNotFound) {
		require.ErrorIs(r.t, err, kv.ErrNotFound, "%q", k)
		return
	}
	require.NoError(r.t, peerErr)
	require.NoError(r.t, err, "%q", k)
	require.True(r.t, bytes.Equal(want, got), "value of %q", k)
	require.NoError(r.t, closer.Close())
}

func (r *pebbleRun) snapshot() {
	if len(r.snaps) == 3 {
		i := r.rng.IntN(3)
		require.NoError(r.t, r.snaps[i].ours.Close())
		require.NoError(r.t, r.snaps[i].peer.Close())
		r.snaps = slices.Delete(r.snaps, i, i+1)
		return
	}
	r.snaps = append(r.snaps, pairOfSnapshots{r.ours.NewSnapshot(), r.peer.NewSnapshot()})
}

func (r *pebbleRun) newIter() {
	if len(r.iters) == 3 {
		require.NoError(r.t, r.iters[0].ours.Close())
		require.NoError(r.t, r.iters[0].peer.Close())
		r.iters = r.iters[1:]
	}
	lo, hi := r.span()
	if r.rng.IntN(3) == 0 {
		lo = nil
	}
	if r.rng.IntN(3) == 0 {
		hi = nil
	}
	var ours kv.Reader = r.ours
	var peer pebble.Reader = r.peer
	if len(r.snaps) > 0 && r.rng.IntN(2) == 0 {
		s := r.snaps[r.rng.IntN(len(r.snaps))]
		ours, peer = s.ours, s.peer
	}
	a, err := ours.NewIter(&kv.IterOptions{LowerBound: lo, UpperBound: hi})
	require.NoError(r.t, err)
	b, err := peer.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	require.NoError(r.t, err)
	r.iters = append(r.iters, pairOfIterators{a, b})
}

// move moves a pair of iterators and compares where they are.
func (r *pebbleRun) move(i pairOfIterators) {
	k := r.key()
	var ours, peer bool
	switch n := r.rng.IntN(12); {
	case n == 0:
		ours, peer = i.ours.First(), i.peer.First()
	case n == 1:
		ours, peer = i.ours.Last(), i.peer.Last()
	case n == 2:
		ours, peer = i.ours.SeekGE(k), i.peer.SeekGE(k)
	case n == 3:
		ours, peer = i.ours.SeekLT(k), i.peer.SeekLT(k)
	case !i.ours.Valid():
		return
	case n < 8:
		ours, peer = i.ours.Next(), i.peer.Next()
	default:
		ours, peer = i.ours.Prev(), i.peer.Prev()
	}
	r.same(i, ours, peer)
}

func (r *pebbleRun) same(i pairOfIterators, ours, peer bool) {
	require.NoError(r.t, i.ours.Error())
	require.NoError(r.t, i.peer.Error())
	require.Equal(r.t, peer, ours)
	require.Equal(r.t, ours, i.ours.Valid())
	if ours {
		require.Equal(r.t, string(i.peer.Key()), string(i.ours.Key()))
		require.True(r.t, bytes.Equal(i.peer.Value(), i.ours.Value()), "value of %q", i.ours.Key())
	}
}

// compareAll walks both stores, both ways.
func (r *pebbleRun) compareAll() {
	a, err := r.ours.NewIter(nil)
	require.NoError(r.t, err)
	b, err := r.peer.NewIter(nil)
	require.NoError(r.t, err)
	i := pairOfIterators{a, b}
	ok := a.First()
	for r.same(i, ok, b.First()); ok; {
		ok = a.Next()
		r.same(i, ok, b.Next())
	}
	ok = a.Last()
	for r.same(i, ok, b.Last()); ok; {
		ok = a.Prev()
		r.same(i, ok, b.Prev())
	}
	require.NoError(r.t, a.Close())
	require.NoError(r.t, b.Close())
}

// TestAgainstPebble does the same random operations on a store and on Pebble.
func TestAgainstPebble(t *testing.T) {
	t.Parallel()
	for seed := range uint64(scale.Count(20, 60)) {
		r := &pebbleRun{t: t, rng: rand.New(rand.NewPCG(seed, 11)), fs: vfs.NewMem(), disk: pebblevfs.NewMem()}
		r.open()
		if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r.t = t
			for range 300 {
				r.step()
			}
			r.compareAll()
		}) {
			return
		}
		r.t = t
		r.close()
	}
}

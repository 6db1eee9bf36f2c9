package models

import (
	"context"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/stretchr/testify/require"
)

// TestTxAgainstModel compares what random transactions see, and what they leave, with a sorted map.
func TestTxAgainstModel(t *testing.T) {
	t.Parallel()
	for seed := range storetest.ModelSeeds / 3 {
		rng := rand.New(rand.NewPCG(seed, 4))
		r := &modelRun{t: t, rng: rng, fs: vfs.NewMem(), opts: stores.RandomOptions(rng), m: modelStore{},
			clock: &storetest.Clock{}}
		r.open()
		for range 60 {
			r.step()
		}
		for range 4 {
			r.transaction()
		}
		r.checkAll()
		r.release()
		require.NoError(t, r.db.Close())
	}
}

// transaction runs one transaction, with or without others' writes meanwhile.
func (r *modelRun) transaction() {
	r.release()
	tx := stores.Begin(r.t, r.db, true)
	view, disturbed := maps.Clone(r.m), r.rng.IntN(3) == 0
	var writes []func(modelStore)
	var iters []*modelIter
	for range 60 {
		var w func(modelStore)
		switch n := r.rng.IntN(20); {
		case n < 8:
			w = r.write(tx)
		case n < 10:
			r.check(tx, view, r.key())
		case n < 11:
			r.checkMany(tx, view)
		case n < 13:
			iters = append(iters, r.iterOf(tx, view))
		case n < 18 && len(iters) > 0:
			for range 5 {
				iters[r.rng.IntN(len(iters))].move(r)
			}
		case n == 18 && disturbed:
			r.batch() // of others
		case n == 19 && r.rng.IntN(5) == 0:
			require.NoError(r.t, r.db.Flush(context.Background()))
		}
		if w != nil {
			w(view)
			writes = append(writes, w)
		}
	}
	for i, mi := range iters {
		if i%2 == 0 { // the others outlive the transaction
			require.NoError(r.t, mi.it.Close())
		}
	}
	switch err := tx.Commit(r.durability()); {
	case err == nil:
		for _, w := range writes {
			w(r.m)
		}
	case disturbed:
		require.ErrorIs(r.t, err, kv.ErrConflict)
	default:
		require.NoError(r.t, err)
	}
	for _, mi := range iters {
		require.NoError(r.t, mi.it.Close())
	}
}

// checkMany compares a MultiGet with a model.
func (r *modelRun) checkMany(tx *kv.Tx, m modelStore) {
	keys := make([][]byte, r.rng.IntN(12))
	for i := range keys {
		keys[i] = r.key()
	}
	values, err := tx.MultiGet(keys)
	require.NoError(r.t, err)
	for i, k := range keys {
		want, present := m.Get(string(k), r.clock.Now())
		require.Equal(r.t, present, values[i] != nil, "%q", k)
		require.Equal(r.t, want, string(values[i]), "%q", k)
	}
}

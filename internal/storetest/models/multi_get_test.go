package models

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/stretchr/testify/require"
)

// A multiReader is what has a MultiGet.
type multiReader interface {
	kv.Reader
	MultiGet(keys [][]byte) ([][]byte, error)
}

// multiCheck compares MultiGet of random keys, some of them twice, with the model and
// with Get.
func (r *modelRun) multiCheck(db multiReader, m modelStore) {
	keys := make([][]byte, r.rng.IntN(60))
	for i := range keys {
		keys[i] = r.key()
		if i > 0 && r.rng.IntN(10) == 0 {
			keys[i] = keys[r.rng.IntN(i)]
		}
	}
	values, err := db.MultiGet(keys)
	require.NoError(r.t, err)
	require.Len(r.t, values, len(keys))
	for i, k := range keys {
		want, present := m.Get(string(k), r.clock.Now())
		require.Equal(r.t, present, values[i] != nil, "%q", k)
		require.Equal(r.t, want, string(values[i]), "%q", k)
		r.check(db, m, k)
	}
	// A copy: the caller's to write to, and to append to.
	for i := range values {
		values[i] = append(values[i], "xyz"...)
		clear(values[i])
	}
}

func (r *modelRun) multiCheckTx() {
	tx, err := r.db.Begin(true)
	require.NoError(r.t, err)
	m := maps.Clone(r.m)
	for range r.rng.IntN(10) {
		k := r.key()
		if r.rng.IntN(3) == 0 {
			require.NoError(r.t, tx.Delete(k))
			m.Delete(string(k))
		} else {
			v := r.value()
			require.NoError(r.t, tx.Set(k, v))
			m.Set(string(k), string(v))
		}
	}
	r.multiCheck(tx, m)
	require.NoError(r.t, tx.Discard())
}

func TestMultiGetModel(t *testing.T) {
	t.Parallel()
	multiGetModel(t, storetest.ModelSeeds/10, func(r *modelRun) { r.fs = vfs.NewMem() })
}

// multiGetModel goes through histories of stores that are where place says.
func multiGetModel(t *testing.T, seeds uint64, place func(r *modelRun)) {
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 32))
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
			for i := range 300 {
				r.step()
				switch {
				case i%10 != 0:
				case len(r.snaps) > 0 && rng.IntN(3) == 0:
					s := r.snaps[rng.IntN(len(r.snaps))]
					r.multiCheck(s.s, s.m)
				case rng.IntN(3) == 0:
					r.multiCheckTx()
				default:
					r.multiCheck(r.db, r.m)
				}
			}
			storetest.RequireIdentities(t, r.db.Metrics())
		}) {
			return
		}
		r.release()
		require.NoError(t, r.db.Close())
	}
}

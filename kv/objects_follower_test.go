package kv

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/objstore"
)

// A view beside a writer that deletes at once what it does not need is a prefix of the writes, or says that it is stale
// until it is refreshed.
func TestAViewWhoseObjectsAreDeleted(t *testing.T) {
	t.Parallel()
	stale := 0
	seeds := uint64(max(scale.Count(4, 8), 2))
	for seed := range seeds {
		s := objstore.NewMem()
		w := takeOver(t, s, seed, 0, 0)
		w.write(1)
		view, err := OpenReadOnly("", objectsOptions(w.rng, s))
		require.NoError(t, err)
		done := make(chan struct{})
		var writing sync.WaitGroup
		writing.Go(func() {
			defer close(done)
			for range 8 {
				w.write(10)
			}
		})
		last, read := 1, false
		for running := true; running || !read; {
			select {
			case <-done:
				running = false
			default:
			}
			if err := view.Refresh(t.Context()); err != nil {
				require.ErrorIs(t, err, ErrStale)
				stale++
				continue
			}
			n, err := contentsOf(t, view)
			if read = err == nil; read {
				require.GreaterOrEqual(t, n, last)
				last = n
			} else {
				require.ErrorIs(t, err, ErrStale)
				stale++
			}
		}
		writing.Wait()
		w.db.settle() // a compaction may delete what the view has
		require.NoError(t, view.Refresh(t.Context()))
		requireWrites(t, view, w.n, w.n)
		require.NoError(t, view.Close())
		require.NoError(t, w.db.Close())
	}
	t.Logf("%d times a view was stale", stale)
}

// readView requires that a view is a prefix of the writes, of which it returns the number, unless it is stale.
func contentsOf(t *testing.T, view Reader) (n int, err error) {
	it, err := view.NewIter(nil)
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
	if n, err = lastWrite(view, 0); err != nil {
		return 0, err
	}
	require.Positive(t, n)
	require.Equal(t, storetest.Numbered([]int{n}, 0, nil), got)
	return n, nil
}

// Transactions are as linearizable in an object store as they are on a disk.
func TestLinearizableInAnObjectStore(t *testing.T) {
	t.Parallel()
	for seed := range uint64(scale.Count(8, 20)) {
		s := objstore.NewMem()
		rng := rand.New(rand.NewPCG(seed, 6))
		db, err := Open("", objectsOptions(rng, s))
		require.NoError(t, err)
		r := &linearRun{t: t, db: db, ended: make(chan struct{}, 1), pad: strings.Repeat("-", int(seed%2)*3000)}
		var clients, background sync.WaitGroup
		for c := range 4 {
			clients.Go(func() { r.client(c, rand.New(rand.NewPCG(seed*10+uint64(c), 6)), 25) })
		}
		background.Go(func() {
			for range r.ended {
				r.compact()
			}
		})
		clients.Wait()
		close(r.ended)
		background.Wait()
		require.True(t, porcupine.CheckOperations(linearModel, r.history), "seed %d", seed)
		require.NoError(t, db.Close())
	}
}

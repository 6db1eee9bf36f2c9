package objects

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/linear"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/objstore"
)

// While a writer deletes at once what it does not need, a view is a prefix of the writes, or says that it is stale
// until it is refreshed.
func TestAViewWhoseObjectsAreDeleted(t *testing.T) {
	t.Parallel()
	stale := 0
	seeds := uint64(max(scale.Count(4, 8), 2))
	for seed := range seeds {
		s := objstore.NewMem()
		w := takeOver(t, s, seed, 0, 0)
		w.write(1)
		view, err := kv.OpenReadOnly("", objectsOptions(w.rng, s))
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
				require.ErrorIs(t, err, kv.ErrStale)
				stale++
				continue
			}
			n, err := contentsOf(t, view)
			if read = err == nil; read {
				require.GreaterOrEqual(t, n, last)
				last = n
			} else {
				require.ErrorIs(t, err, kv.ErrStale)
				stale++
			}
		}
		writing.Wait()
		harness.Settle(w.db) // a compaction may delete what the view has
		require.NoError(t, view.Refresh(t.Context()))
		requireWrites(t, view, w.n, w.n)
		require.NoError(t, view.Close())
		require.NoError(t, w.db.Close())
	}
	t.Logf("%d times a view was stale", stale)
}

// contentsOf requires that a view is a prefix of the writes, of which it returns the number, unless it is stale.
func contentsOf(t *testing.T, view kv.Reader) (n int, err error) {
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
	if n, err = storetest.LastNumbered(view.Get, 0); err != nil {
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
		db, err := kv.Open("", objectsOptions(rng, s))
		require.NoError(t, err)
		linear.Clients{Number: 4, Ops: 25, Pad: strings.Repeat("-", int(seed%2)*3000),
			Random: func(c int) *rand.Rand { return rand.New(rand.NewPCG(seed*10+uint64(c), 6)) },
		}.Check(t, db, fmt.Sprint("seed ", seed))
		require.NoError(t, db.Close())
	}
}

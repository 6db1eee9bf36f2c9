package objects

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// requireFenced requires that a writer ends with ErrFenced, whatever it tries, and changes nothing.
func (w *objectsWriter) requireFenced(s objstore.Store) {
	w.t.Helper()
	before := bucket(w.t, s)
	var err error
	for range 100 { // what is not synced need not be refused at once
		if err = w.try(); err != nil {
			break
		}
	}
	require.Error(w.t, err)
	harness.Settle(w.db) // it may have tried to resume
	require.ErrorIs(w.t, stores.CommitNumbered(w.db, 0, w.n, kv.Sync), objects.ErrFenced)
	require.ErrorIs(w.t, w.db.Flush(context.Background()), objects.ErrFenced)
	harness.Settle(w.db)
	require.ErrorIs(w.t, w.db.Close(), objects.ErrFenced)
	after := bucket(w.t, s)
	for key := range after { // a sorted file that it had begun is in no list, and the next writer deletes it
		if _, old := before[key]; !old && key[:4] == "sst/" {
			delete(after, key)
		}
	}
	require.Equal(w.t, before, after)
}

// A writer that is cut off from the object store, and comes back when another has taken over, has compacted
// and collected, finds out, and neither publishes nor deletes anything.
func TestAPartitionThatHealsAfterATakeOver(t *testing.T) {
	t.Parallel()
	for seed := range uint64(scale.Count(8, 16)) {
		s := objstore.NewMem()
		faults := objstoretest.NewFaults(s, seed)
		old := takeOver(t, faults, seed, 0, 0)
		old.write(20)
		for range seed { // some are in memory alone when the partition begins
			require.NoError(t, old.try())
		}
		faults.Partition(true)
		w := takeOver(t, s, seed+50, old.synced, old.n)
		for range 4 {
			w.write(10)
			require.NoError(t, w.db.Compact(t.Context(), nil, nil))
		}
		requireOnlyLiveObjects(t, s, w)
		if seed%2 == 0 {
			require.Error(t, stores.CommitNumbered(old.db, 0, old.n, kv.Sync), "it cannot be acknowledged")
		}
		faults.Partition(false)
		old.requireFenced(s)
		w.write(10)
		requireWrites(t, w.db, w.n, w.n)
		require.NoError(t, w.db.Close())
		w = takeOver(t, s, seed+60, w.n, w.n)
		requireOnlyLiveObjects(t, s, w)
		require.NoError(t, w.db.Close())
	}
}

// A writer that stalls in a request, until its successors have published many lists and deleted all that was old, is
// refused.
func TestAWriterThatStallsInARequest(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"entry/", "sst/"} {
		for seed := range uint64(3) {
			s := objstore.NewMem()
			faults := objstoretest.NewFaults(s, seed)
			old := takeOver(t, faults, seed, 0, 0)
			old.write(10)
			reached, release := make(chan struct{}), make(chan struct{})
			var once sync.Once
			faults.Inject(func(c objstoretest.Call) objstoretest.Fault {
				if isPut(c) && len(c.Key) > len(where) && c.Key[:len(where)] == where {
					once.Do(func() {
						close(reached)
						<-release
					})
				}
				return objstoretest.Fault{}
			})
			ended := make(chan error)
			go func() {
				err := stores.CommitNumbered(old.db, 0, old.n+1, kv.Sync)
				ended <- errors.Join(err, old.db.Flush(t.Context()))
			}()
			<-reached
			n, w := old.n, old
			for life := range seed + 1 {
				w = takeOver(t, s, seed+life+1, n, old.n+int(life)*1000+1)
				for range 5 {
					w.write(3)
				}
				n = w.n
			}
			require.NoError(t, w.db.Close())
			close(release)
			require.ErrorIs(t, <-ended, objects.ErrFenced, where)
			old.n++
			old.requireFenced(s)
			w = takeOver(t, s, seed+90, n, n)
			require.NoError(t, w.db.Close())
		}
	}
}

// Of several that open a store at once, the last one to put its fence is the writer; all others are told, at once
// or with their next write.
func TestWritersRaceToOpen(t *testing.T) {
	t.Parallel()
	for seed := range uint64(scale.Count(8, 20)) {
		s := objstore.NewMem()
		n := 0
		for range 3 {
			const racers = 3
			dbs, errs := make([]*kv.DB, racers), make([]error, racers)
			var wait sync.WaitGroup
			for i := range racers {
				wait.Go(func() {
					w := &objectsWriter{rng: rand.New(rand.NewPCG(seed, uint64(i)))}
					dbs[i], errs[i] = kv.Open("", objectsOptions(w.rng, s))
				})
			}
			wait.Wait()
			winners := 0
			for i, db := range dbs {
				if db == nil {
					require.ErrorIs(t, errs[i], objects.ErrFenced)
					continue
				}
				if err := stores.CommitNumbered(db, 0, n+1, kv.Sync); err == nil {
					winners++
					n++
					requireWrites(t, db, n, n)
					require.NoError(t, db.Close())
				} else {
					require.ErrorIs(t, err, objects.ErrFenced)
					require.ErrorIs(t, db.Close(), objects.ErrFenced)
				}
			}
			require.Equal(t, 1, winners)
		}
	}
}

// A writer whose compaction misses a file, because its successor has deleted it, says that it was fenced.
func TestACompactionThatMissesAFileFindsTheSuccessor(t *testing.T) {
	s := objstore.NewMem()
	old := takeOver(t, s, 1, 0, 0)
	old.write(10)
	w := takeOver(t, s, 2, old.synced, old.n)
	w.write(10)
	require.NoError(t, w.db.Compact(t.Context(), nil, nil))
	requireOnlyLiveObjects(t, s, w)
	require.Error(t, old.db.Compact(t.Context(), nil, nil))
	require.ErrorIs(t, stores.CommitNumbered(old.db, 0, old.n, kv.NoSync), objects.ErrFenced)
	require.ErrorIs(t, old.db.Close(), objects.ErrFenced)
	require.NoError(t, w.db.Close())
}

// Requests that the network delivers when their writer is long gone do no harm.
func TestRequestsThatArriveTooLate(t *testing.T) {
	t.Parallel()
	for seed := range uint64(scale.Count(6, 12)) {
		s := newObjectsStore(t)
		faults := objstoretest.NewFaults(s, seed)
		faults.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
			if c.Kind != objstore.Get && c.Kind != objstore.List && c.Nth == 1 && c.Rand.IntN(2) == 0 {
				f.Outcome = objstoretest.Late
			}
			return f
		})
		old := takeOver(t, faults, seed, 0, 0)
		old.write(40)
		faults.Cut()
		w := takeOver(t, s, seed+10, old.n, old.n)
		w.write(20)
		requireOnlyLiveObjects(t, s, w)
		live := bucket(t, s)
		faults.Deliver()
		now := bucket(t, s)
		maps.DeleteFunc(now, func(key string, _ objectState) bool { return live[key].size == 0 })
		require.Equal(t, live, now, "nothing that is needed was touched")
		requireWrites(t, w.db, w.n, w.n)
		w.write(20)
		_ = old.db.Close()
		next := takeOver(t, s, seed+20, w.n, w.n)
		require.ErrorIs(t, w.db.Close(), objects.ErrFenced)
		next.write(1)
		requireOnlyLiveObjects(t, s, next)
		require.NoError(t, next.db.Close())
	}
}

// An object store that refuses all writes for a while makes the store say so; it goes on when that is over.
func TestAnObjectStoreThatRefusesWrites(t *testing.T) {
	t.Parallel()
	s := objstore.NewMem()
	faults := objstoretest.NewFaults(s, 1)
	refused := errors.New("quota exceeded")
	w := takeOver(t, faults, 1, 0, 0)
	for range 5 {
		w.write(10)
		faults.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
			if isPut(c) {
				f.Outcome, f.Err = objstoretest.NotPerformed, refused
			}
			return f
		})
		err := stores.CommitNumbered(w.db, 0, w.n+1, kv.Sync)
		require.ErrorIs(t, err, refused)
		requireWrites(t, w.db, w.n, w.n)
		require.ErrorIs(t, w.db.Set([]byte("more"), nil, kv.NoSync), kv.ErrReadOnly)
		faults.Inject(noFault)
		stores.UntilResumed(w.db)
	}
	w.write(10)
	require.NoError(t, w.db.Close())
	w = takeOver(t, s, 2, w.n, w.n)
	require.NoError(t, w.db.Close())
}

package kv

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// openBounded opens a store whose reads must not be older than a time.
func openBounded(t *testing.T, s objstore.Store, most time.Duration, e Events) *DB {
	t.Helper()
	db, err := Open("", &Options{MemtableSize: 64 << 10, Events: e, Objects: &objects.Config{Store: s,
		LogInterval: time.Hour,
		Patience:    time.Millisecond, MaxStaleness: most}})
	require.NoError(t, err)
	return db
}

// readErrors returns the errors of all calls that read a store, or say that it has what was written.
func readErrors(db *DB) map[string]error {
	key := []byte("key")
	errs := map[string]error{}
	reads := func(name string, r Reader) {
		_, errs[name+"Get"] = r.Get(key)
		_, errs[name+"AppendGet"] = r.AppendGet(nil, key)
		_, errs[name+"Has"] = r.Has(key)
		_, errs[name+"GetSize"] = r.GetSize(key)
		v, err := r.GetReader(key)
		if errs[name+"GetReader"] = err; err == nil {
			_ = v.Close()
		}
		it, err := r.NewIter(nil)
		if errs[name+"NewIter"] = err; err == nil {
			_ = it.Close()
		}
	}
	reads("DB.", db)
	s := db.NewSnapshot()
	reads("Snapshot.", s)
	_ = s.Close()
	_, errs["MultiGet"] = db.MultiGet([][]byte{key})
	_, errs["Explain"] = db.Explain(key)
	_, errs["ExplainScan"] = db.ExplainScan(nil)
	errs["View"] = db.View(func(*Tx) error { return nil })
	errs["Update"] = db.Update(func(*Tx) error { return nil })
	errs["Sync"] = db.Sync(context.Background())
	return errs
}

// A writer that was taken over and only reads learns it within the bound, and then answers nothing. Without a bound it
// goes on, and asks nothing.
func TestAWriterThatWasTakenOverStopsReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const bound = 10 * time.Second
		for _, most := range []time.Duration{bound, 0} {
			s := objstore.NewMem()
			var counters objstore.Counters
			var failures []error
			old := openBounded(t, objstore.WithCounters(s, &counters), most,
				Events{Failed: func(err error) { failures = append(failures, err) }})
			require.NoError(t, old.Set([]byte("key"), []byte("old"), Sync))
			synctest.Wait()
			before := counters.Snapshot()
			time.Sleep(time.Hour)
			synctest.Wait()
			asked := counters.Snapshot().Minus(before)
			it, err := old.NewIter(nil)
			require.NoError(t, err)
			tx, err := old.Begin(true)
			require.NoError(t, err)

			db := openBounded(t, s, bound, Events{})
			require.NoError(t, db.Set([]byte("key"), []byte("new"), Sync))
			require.NoError(t, old.Fenced())
			time.Sleep(bound)
			synctest.Wait()
			if most == 0 {
				require.Zero(t, asked[objstore.Get].Requests)
				for name, err := range readErrors(old) {
					require.NoError(t, err, name)
				}
				require.NoError(t, errors.Join(old.Fenced(), tx.Commit(Sync)))
			} else {
				require.LessOrEqual(t, asked[objstore.Get].Requests, int64(2*time.Hour/bound))
				require.GreaterOrEqual(t, asked[objstore.Get].Requests, int64(time.Hour/bound))
				for name, err := range readErrors(old) {
					require.ErrorIs(t, err, objects.ErrFenced, name)
				}
				require.ErrorIs(t, old.Fenced(), objects.ErrFenced)
				require.ErrorIs(t, tx.Commit(Sync), objects.ErrFenced)
				require.Len(t, failures, 1)
				require.ErrorIs(t, failures[0], objects.ErrFenced)
			}
			require.True(t, it.First())
			require.Equal(t, "old", string(it.Value()))
			require.NoError(t, it.Close())
			requireContents(t, storetest.Model{"key": "new"}, db)
			require.NoError(t, db.Fenced())
			require.ErrorIs(t, old.Set([]byte("key"), nil, Sync), objects.ErrFenced)
			require.ErrorIs(t, old.Fenced(), objects.ErrFenced)
			require.ErrorIs(t, old.Close(), objects.ErrFenced)
			require.NoError(t, db.Close())
			require.ErrorIs(t, db.View(nil), ErrClosed)
		}
	})
}

// A writer that gets no answer cannot know. It answers nothing when the bound has passed, until the object store does.
// What it writes meanwhile is there.
func TestAWriterThatIsCutOffStopsReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const bound = 10 * time.Second
		s := storetest.NewSilentStore(objstore.NewMem())
		db := openBounded(t, s, bound, Events{})
		require.NoError(t, db.Set([]byte("key"), []byte("value"), Sync))
		for range 3 {
			s.Left.Store(0)
			time.Sleep(bound / 4)
			requireContents(t, storetest.Model{"key": "value"}, db)
			time.Sleep(bound)
			for name, err := range readErrors(db) {
				require.ErrorIs(t, err, ErrUnconfirmed, name)
				require.NotErrorIs(t, err, objects.ErrFenced, name)
			}
			require.NoError(t, db.Fenced())
			require.NoError(t, db.Set([]byte("key"), []byte("other"), Async))
			db.mu.Lock()
			require.NoError(t, db.rotateTo(0, nil)) // readers get another state meanwhile
			db.mu.Unlock()
			require.ErrorIs(t, db.View(nil), ErrUnconfirmed)
			s.Left.Store(1 << 40)
			time.Sleep(2 * bound)
			synctest.Wait()
			requireContents(t, storetest.Model{"key": "other"}, db)
			require.NoError(t, db.Set([]byte("key"), []byte("value"), Sync))
		}
		require.NoError(t, db.Close())
	})
}

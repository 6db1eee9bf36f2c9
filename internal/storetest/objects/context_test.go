package objects

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// Close of a view does not wait for an object store that does not answer.
func TestAViewIsClosedWhileARefreshGetsNoAnswer(t *testing.T) {
	s := storetest.NewSilentStore(objstore.NewMem())
	db := openObjects(t, s, nil)
	require.NoError(t, db.Set([]byte("key"), nil, kv.Sync))
	require.NoError(t, db.Close())
	reader := openObjectsReader(t, s)
	s.Left.Store(0)
	refreshed := make(chan error, 1)
	go func() { refreshed <- reader.Refresh(context.Background()) }()
	<-s.Asked
	require.NoError(t, reader.Close())
	require.ErrorIs(t, <-refreshed, kv.ErrClosed)
}

// Each request in turn gets no answer until the caller has had enough.
func TestRequestsEndWithTheContextOfRefresh(t *testing.T) {
	t.Parallel()
	waits := 0
	for answered := int64(0); ; answered++ {
		mem := objstore.NewMem()
		s := storetest.NewSilentStore(mem)
		db := openObjects(t, mem, nil)
		require.NoError(t, db.Set([]byte("a"), nil, kv.Sync))
		view := openObjectsReader(t, s)
		for range 6 {
			require.NoError(t, db.Set([]byte("b"), nil, kv.Sync))
			require.NoError(t, db.Flush(t.Context()))
		}
		s.Left.Store(answered)
		silenced, err := s.UntilAsked(view.Refresh)
		if silenced {
			require.ErrorIs(t, err, context.Canceled)
			storetest.RequireContents(t, storetest.Model{"a": ""}, view)
		}
		s.Left.Store(answered)
		if silenced && answered%2 == 0 {
			again, err := s.UntilAsked(view.WaitForChange)
			if again {
				waits++
				require.ErrorIs(t, err, context.Canceled)
			}
		}
		s.Left.Store(1 << 40)
		require.NoError(t, view.Refresh(t.Context()))
		storetest.RequireContents(t, storetest.Model{"a": "", "b": ""}, view)
		require.NoError(t, view.Close())
		require.NoError(t, db.Close())
		if !silenced {
			require.Greater(t, answered, int64(10))
			require.Positive(t, waits)
			return
		}
	}
}

func TestRequestsEndWithTheContextOfOpen(t *testing.T) {
	t.Parallel()
	for _, there := range []bool{false, true} {
		for answered := int64(0); ; answered++ {
			mem := objstore.NewMem()
			want := storetest.Model{}
			if there {
				var db *kv.DB
				db, want = objectsWith(t, mem, 100)
				require.NoError(t, db.Flush(t.Context()))
				require.NoError(t, db.Set([]byte("more"), nil, kv.Sync))
				want["more"] = ""
				t.Cleanup(func() { _ = db.Close() })
			}
			s := storetest.NewSilentStore(mem)
			s.Left.Store(answered)
			silenced, err := s.UntilAsked(func(ctx context.Context) error {
				db, err := kv.OpenContext(ctx, "", &kv.Options{Objects: &objects.Config{Store: s,
					Patience: time.Millisecond}})
				if err == nil {
					s.Left.Store(1 << 40)
					err = db.Close()
				}
				return err
			})
			if !silenced {
				require.NoError(t, err)
				require.Greater(t, answered, int64(5))
				break
			}
			require.ErrorIs(t, err, context.Canceled)
			db := openObjects(t, mem, nil)
			storetest.RequireContents(t, want, db)
			require.NoError(t, db.Close())
		}
	}
}

// CloseContext ends when its context does, although the object store does not answer and there are writes to put. What
// the object store has is there for the next writer.
func TestAStoreIsClosedWhileTheObjectStoreIsSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := objstore.NewMem()
		s := storetest.NewSilentStore(mem)
		db := openObjects(t, s, nil)
		require.NoError(t, db.Set([]byte("key"), nil, kv.Sync))
		s.Left.Store(0)
		require.NoError(t, db.Set([]byte("lost"), nil, kv.Async))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		err := db.CloseContext(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, db.CloseContext(t.Context()), err, "the second Close returns what the first did")
		require.Equal(t, 2*time.Second, time.Since(start))
		next := openObjects(t, mem, nil)
		storetest.RequireContents(t, storetest.Model{"key": ""}, next)
		require.NoError(t, next.CloseContext(t.Context()))
	})
}

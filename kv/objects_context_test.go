package kv

import (
	"context"
	"io"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// A silent store gives no answer to requests, from one on, until their contexts end. It deletes what it is told to.
type silent struct {
	objstore.Store
	left  atomic.Int64 // requests that are answered
	asked chan struct{}
}

func newSilent(s objstore.Store) *silent {
	q := &silent{Store: s, asked: make(chan struct{}, 1000)}
	q.left.Store(1 << 40)
	return q
}

func (s *silent) wait(ctx context.Context) error {
	if s.left.Add(-1) >= 0 {
		return nil
	}
	s.asked <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func (s *silent) GetRange(ctx context.Context, key string, off int64, p []byte) (int, error) {
	if err := s.wait(ctx); err != nil {
		return 0, err
	}
	return s.Store.GetRange(ctx, key, off, p)
}

func (s *silent) Put(ctx context.Context, key string, r io.ReaderAt, size int64) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	return s.Store.Put(ctx, key, r, size)
}

func (s *silent) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	return s.Store.PutIfAbsent(ctx, key, body)
}

func (s *silent) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		if err := s.wait(ctx); err != nil {
			yield(objstore.Object{}, err)
			return
		}
		s.Store.List(ctx, prefix, after)(yield)
	}
}

// Close of a view does not wait for an object store that does not answer.
func TestAViewIsClosedWhileARefreshGetsNoAnswer(t *testing.T) {
	s := newSilent(objstore.NewMem())
	db := openObjects(t, s, nil)
	require.NoError(t, db.Set([]byte("key"), nil, Sync))
	require.NoError(t, db.Close())
	reader := openObjectsReader(t, s)
	s.left.Store(0)
	refreshed := make(chan error, 1)
	go func() { refreshed <- reader.Refresh(context.Background()) }()
	<-s.asked
	require.NoError(t, reader.Close())
	require.ErrorIs(t, <-refreshed, ErrClosed)
}

// A holding store, once armed, answers reads when it may.
type holding struct {
	objstore.Store
	armed      atomic.Bool
	asked, may chan struct{}
}

func (h *holding) GetRange(ctx context.Context, key string, off int64, p []byte) (int, error) {
	if h.armed.Load() {
		close(h.asked)
		select {
		case <-h.may:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return h.Store.GetRange(ctx, key, off, p)
}

// A read of a file that a refresh has opened goes on when the refresh ends.
func TestReadsOutliveARefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &holding{Store: objstore.NewMem(), asked: make(chan struct{}), may: make(chan struct{})}
		db := openObjects(t, s, nil)
		require.NoError(t, db.Set([]byte("key"), nil, Sync))
		require.NoError(t, db.Flush(t.Context()))
		require.NoError(t, db.Close())
		view := openObjectsReader(t, s)
		end := view.objects.within(t.Context(), view.follower.closing)
		f, err := view.openFile(view.tables.Path(view.current.Runs[0].Last().Num))
		require.NoError(t, err)
		s.armed.Store(true)
		read := make(chan error)
		go func() {
			_, err := f.ReadAt(make([]byte, 1), 0)
			read <- err
		}()
		<-s.asked
		end()
		synctest.Wait()
		s.armed.Store(false)
		close(s.may)
		require.NoError(t, <-read)
		require.NoError(t, f.Close())
		require.NoError(t, view.Close())
	})
}

// untilAsked calls f with a context that ends when the store has been asked for something that it does not answer, and
// reports whether it was.
func (s *silent) untilAsked(f func(context.Context) error) (silenced bool, err error) {
	for len(s.asked) > 0 {
		<-s.asked
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan struct{})
	done := make(chan bool)
	go func() {
		select {
		case <-s.asked:
			cancel()
			done <- true
		case <-ended:
			done <- false
		}
	}()
	err = f(ctx)
	close(ended)
	silenced = <-done
	s.left.Store(1 << 40)
	return silenced, err
}

// Each request in turn gets no answer until the caller has had enough.
func TestRequestsEndWithTheContextOfRefresh(t *testing.T) {
	t.Parallel()
	waits := 0
	for answered := int64(0); ; answered++ {
		mem := objstore.NewMem()
		s := newSilent(mem)
		db := openObjects(t, mem, nil)
		require.NoError(t, db.Set([]byte("a"), nil, Sync))
		view := openObjectsReader(t, s)
		for range 6 {
			require.NoError(t, db.Set([]byte("b"), nil, Sync))
			require.NoError(t, db.Flush(t.Context()))
		}
		s.left.Store(answered)
		silenced, err := s.untilAsked(view.Refresh)
		if silenced {
			require.ErrorIs(t, err, context.Canceled)
			requireContents(t, storetest.Model{"a": ""}, view)
		}
		s.left.Store(answered)
		if silenced && answered%2 == 0 {
			again, err := s.untilAsked(view.WaitForChange)
			if again {
				waits++
				require.ErrorIs(t, err, context.Canceled)
			}
		}
		s.left.Store(1 << 40)
		require.NoError(t, view.Refresh(t.Context()))
		requireContents(t, storetest.Model{"a": "", "b": ""}, view)
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
				var db *DB
				db, want = objectsWith(t, mem, 100)
				require.NoError(t, db.Flush(t.Context()))
				require.NoError(t, db.Set([]byte("more"), nil, Sync))
				want["more"] = ""
				t.Cleanup(func() { _ = db.Close() })
			}
			s := newSilent(mem)
			s.left.Store(answered)
			silenced, err := s.untilAsked(func(ctx context.Context) error {
				db, err := OpenContext(ctx, "", &Options{Objects: &objects.Config{Store: s,
					Patience: time.Millisecond}})
				if err == nil {
					s.left.Store(1 << 40)
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
			requireContents(t, want, db)
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
		s := newSilent(mem)
		db := openObjects(t, s, nil)
		require.NoError(t, db.Set([]byte("key"), nil, Sync))
		s.left.Store(0)
		require.NoError(t, db.Set([]byte("lost"), nil, Async))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		err := db.CloseContext(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, db.CloseContext(t.Context()), err, "the second Close returns what the first did")
		require.Equal(t, 2*time.Second, time.Since(start))
		next := openObjects(t, mem, nil)
		requireContents(t, storetest.Model{"key": ""}, next)
		require.NoError(t, next.CloseContext(t.Context()))
	})
}

// A CloseContext that need not wait has no error, whatever its context.
func TestCloseContextOfAStoreInADirectory(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	db := openMem(t, nil)
	require.NoError(t, db.Set([]byte("key"), nil, nil))
	require.NoError(t, db.CloseContext(ctx))
	require.NoError(t, db.CloseContext(t.Context()))
}

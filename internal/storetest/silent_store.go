package storetest

import (
	"context"
	"io"
	"iter"
	"sync/atomic"

	"github.com/siftkv/siftkv/objstore"
)

// A SilentStore gives no answer to requests, from one on, until their contexts end. It deletes what it is told to.
type SilentStore struct {
	objstore.Store
	Left  atomic.Int64 // requests that are answered
	Asked chan struct{}
}

// NewSilentStore returns a client of an object store that is silent once Left is set.
func NewSilentStore(s objstore.Store) *SilentStore {
	q := &SilentStore{Store: s, Asked: make(chan struct{}, 1000)}
	q.Left.Store(1 << 40)
	return q
}

func (s *SilentStore) wait(ctx context.Context) error {
	if s.Left.Add(-1) >= 0 {
		return nil
	}
	s.Asked <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

// GetRange implements objstore.Store.
func (s *SilentStore) GetRange(ctx context.Context, key string, off int64, p []byte) (int, error) {
	if err := s.wait(ctx); err != nil {
		return 0, err
	}
	return s.Store.GetRange(ctx, key, off, p)
}

// Put implements objstore.Store.
func (s *SilentStore) Put(ctx context.Context, key string, r io.ReaderAt, size int64) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	return s.Store.Put(ctx, key, r, size)
}

// PutIfAbsent implements objstore.Store.
func (s *SilentStore) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	return s.Store.PutIfAbsent(ctx, key, body)
}

// List implements objstore.Store.
func (s *SilentStore) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		if err := s.wait(ctx); err != nil {
			yield(objstore.Object{}, err)
			return
		}
		s.Store.List(ctx, prefix, after)(yield)
	}
}

// UntilAsked calls f with a context that ends when the store has been asked for something that it does not answer, and
// reports whether it was.
func (s *SilentStore) UntilAsked(f func(context.Context) error) (silenced bool, err error) {
	for len(s.Asked) > 0 {
		<-s.Asked
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan struct{})
	done := make(chan bool)
	go func() {
		select {
		case <-s.Asked:
			cancel()
			done <- true
		case <-ended:
			done <- false
		}
	}()
	err = f(ctx)
	close(ended)
	silenced = <-done
	s.Left.Store(1 << 40)
	return silenced, err
}

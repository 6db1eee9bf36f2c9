package remote

import (
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/siftkv/siftkv/internal/callback"
	"github.com/siftkv/siftkv/objstore"
)

// Guard returns a store that turns panics and runtime.Goexit in calls of s into errors. That of a write matches
// objstore.ErrUnknown: the write may have been performed. Each call has a goroutine of its own, which takes about a
// microsecond.
func Guard(s objstore.Store) objstore.Store {
	if g, ok := s.(guard); ok {
		return g
	}
	return guard{s}
}

// A guard calls an object store of the application's.
type guard struct{ s objstore.Store }

func guarded(method string, f func() error) error { return callback.Do("Objects.Store."+method, f) }

// guardedWrite is guarded for a write.
func guardedWrite(method string, f func() error) error {
	returned := false
	err := guarded(method, func() (err error) {
		err = f()
		returned = true
		return err
	})
	if !returned {
		err = fmt.Errorf("%w: %w", objstore.ErrUnknown, err)
	}
	return err
}

func (g guard) GetRange(ctx context.Context, key string, off int64, p []byte) (n int, err error) {
	err = guarded("GetRange", func() (err error) {
		n, err = g.s.GetRange(ctx, key, off, p)
		return err
	})
	return n, err
}

func (g guard) Put(ctx context.Context, key string, r io.ReaderAt, size int64) error {
	return guardedWrite("Put", func() error { return g.s.Put(ctx, key, r, size) })
}

func (g guard) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	return guardedWrite("PutIfAbsent", func() error { return g.s.PutIfAbsent(ctx, key, body) })
}

func (g guard) Delete(ctx context.Context, key string) error {
	return guardedWrite("Delete", func() error { return g.s.Delete(ctx, key) })
}

func (g guard) Close() error { return guarded("Close", g.s.Close) }

// List pulls one object after the other, so that the loop's body runs on the caller's goroutine.
func (g guard) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		next, stop := iter.Pull2(func(yield func(objstore.Object, error) bool) { // nothing runs before next does
			g.s.List(ctx, prefix, after)(yield)
		})
		defer func() { _ = guarded("List", func() error { stop(); return nil }) }()
		for {
			var o objstore.Object
			var failed error
			more := false
			err := guarded("List", func() error {
				o, failed, more = next()
				return nil
			})
			if err != nil {
				yield(objstore.Object{}, err)
				return
			}
			if !more || !yield(o, failed) {
				return
			}
		}
	}
}

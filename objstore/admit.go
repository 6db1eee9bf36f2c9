package objstore

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
)

// A gate is what every call of an implementation passes first.
type gate struct{ closed atomic.Bool }

// admit returns the error of a call that must not be performed.
func (g *gate) admit(ctx context.Context, op Kind, key string) error {
	err := g.check(ctx)
	if err == nil && op != List {
		err = CheckKey(key)
	}
	return wrap(op, key, err)
}

// check returns why no call can be performed.
func (g *gate) check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if g.closed.Load() {
		return ErrClosed
	}
	return nil
}

func (g *gate) Close() error {
	g.closed.Store(true)
	return nil
}

func wrap(op Kind, key string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Key: key, Err: err}
}

// span returns which bytes of an object of size bytes GetRange reads into p.
func span(size, off int64, p []byte) (from int64, n int, err error) {
	switch {
	case off < 0 && -off > int64(len(p)) || off == -1<<63:
		return 0, 0, fmt.Errorf("%w: %d bytes for the last %d", io.ErrShortBuffer, len(p), uint64(-off))
	case off < 0:
		from = max(size+off, 0)
		n = int(size - from)
	default:
		from = min(off, size)
		n = int(min(int64(len(p)), size-from))
	}
	if n < len(p) {
		err = io.EOF
	}
	return from, n, err
}

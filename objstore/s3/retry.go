package s3

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/objstore"
)

// A call is one of a method of the store.
type call struct {
	s     *store
	kind  objstore.Kind
	key   string
	meter *objstore.Meter

	sent atomic.Int64 // requests, of whatever kind

	cleanup bool // it goes on when the store is closed

	lost bool // a write of the call may have been performed, or may be yet
}

// maxDoubled bounds the pauses, in multiples of the first.
const maxDoubled = 100

// silentFor is how long a request is tried as long as the server has not replied to any: it may be the wrong one.
const silentFor = 30 * time.Second

// repeat tries a request until there is an answer that another try would not change, and returns the last failure.
func (c *call) repeat(ctx context.Context, r request) *failure {
	return c.repeatWith(ctx, r, func(retries int64) *failure {
		f := c.try(ctx, r, objstore.Count{Retries: retries})
		if f != nil && f.lost && r.commits {
			c.lost = true
		}
		return f
	})
}

// repeatWith is repeat of a try that is given as a function, which takes 1 for a retry and 0 for the first try.
func (c *call) repeatWith(ctx context.Context, r request, try func(retries int64) *failure) *failure {
	begun := time.Now()
	for n, pause := 1, c.s.Pause; ; n, pause = n+1, min(2*pause, maxDoubled*c.s.Pause) {
		f := try(int64(min(n-1, 1)))
		switch {
		case f == nil || !f.again || n >= c.s.Tries || r.once && f.lost:
			return f
		case f.silent && !c.s.answered.Load() && time.Since(begun) >= silentFor:
			return f
		case !sleep(ctx, pause-rand.N(pause/2+1)):
			f.also(ctx.Err())
			return f
		case isClosed(r.quit):
			return f
		case c.s.closed.Load() && !c.cleanup:
			f.also(objstore.ErrClosed)
			return f
		}
	}
}

// result returns what a call returns that ended with f.
func (c *call) result(f *failure) error {
	if f == nil {
		return nil
	}
	err := error(f)
	if c.lost {
		err = fmt.Errorf("%w: %w", objstore.ErrUnknown, f)
	}
	return &objstore.Error{Op: c.kind, Key: c.key, Err: err}
}

func isClosed(quit <-chan struct{}) bool {
	select {
	case <-quit:
		return true
	default:
		return false
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

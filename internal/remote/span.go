package remote

import (
	"context"
	"sync/atomic"
)

// A span is a stretch of time in which requests end with a context, in addition to their own. A nil one is over.
type span struct {
	ctx  context.Context
	over atomic.Bool
}

// bound returns a context that ends with ctx, and within the span with the span's.
func (s *span) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if s == nil || s.over.Load() {
		return ctx, func() {}
	}
	both, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.ctx, cancel)
	return both, func() {
		stop()
		cancel()
	}
}

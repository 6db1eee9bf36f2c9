// Package limit bounds how many callers do a thing at once, and how many wait for
// their turn. What would wait longer is refused at once: a queue without a bound
// turns a short overload into a long one.
package limit

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// ErrFull says that all places were taken and the queue was full, or that the
// caller's time ended in the queue. The work was not begun.
var ErrFull = errors.New("too many callers")

// Gate lets a number of callers through at once. It may be used from many goroutines.
type Gate struct {
	places   chan struct{}
	queue    int64
	waiting  atomic.Int64
	observer Observer
}

// Observer is told what happens at a gate, for metrics. Its counters are added to,
// and taken from, as callers come and go.
type Observer struct {
	Running, Waiting *atomic.Int64
	Refused          *atomic.Uint64
}

// New returns a gate of some places, at least one, and a queue for more callers.
func New(places, queue int, o Observer) *Gate {
	return &Gate{places: make(chan struct{}, max(places, 1)), queue: int64(max(queue, 0)), observer: o}
}

// Do runs f when there is a place for it. Callers that find the queue full get
// ErrFull at once, those whose context ends in the queue get it then, with the
// context's error.
func (g *Gate) Do(ctx context.Context, f func(context.Context) error) error {
	if err := g.enter(ctx); err != nil {
		g.observer.Refused.Add(1)
		return err
	}
	g.observer.Running.Add(1)
	defer func() {
		g.observer.Running.Add(-1)
		<-g.places
	}()
	return f(ctx)
}

func (g *Gate) enter(ctx context.Context) error {
	select {
	case g.places <- struct{}{}:
		return nil
	default:
	}
	if g.waiting.Add(1) > g.queue {
		g.waiting.Add(-1)
		return fmt.Errorf("%w: %d at work, %d in the queue", ErrFull, cap(g.places), g.queue)
	}
	g.observer.Waiting.Add(1)
	defer func() {
		g.observer.Waiting.Add(-1)
		g.waiting.Add(-1)
	}()
	select {
	case g.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w in the queue", ErrFull, ctx.Err())
	}
}

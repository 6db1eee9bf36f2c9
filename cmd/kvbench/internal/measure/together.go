package measure

import (
	"context"
	"errors"
)

// Together runs n workers at once and returns when all have ended. The first error
// ends the context of the others and is returned; one worker runs in the caller's goroutine.
func Together(ctx context.Context, n int, work func(ctx context.Context, worker int) error) error {
	if n == 1 {
		return work(ctx, 0)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make(chan error, n)
	for i := range n {
		go func() { ends <- work(ctx, i) }()
	}
	var first error
	for range n {
		err := <-ends
		if err == nil {
			continue
		}
		cancel() // the others need not go on
		if first == nil || errors.Is(first, context.Canceled) {
			first = err // what ended the others, and not that they were ended
		}
	}
	return first
}

package commit

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/base"
)

// A Watch wakes goroutines that wait for later writes. Without any, a commit asks one variable. It is safe for
// concurrent use.
type Watch struct {
	waiting atomic.Bool
	mu      sync.Mutex
	wake    chan struct{} // closed by Notify; nil: none waits
}

// Notify wakes all that wait. What they wait for comes before it.
func (w *Watch) Notify() {
	if !w.waiting.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting.Store(false)
	if w.wake != nil {
		close(w.wake)
		w.wake = nil
	}
}

// Wait returns when done does, which is asked first and after each Notify, or when ctx ends. The error is
// base.ErrContextEnded then.
func (w *Watch) Wait(ctx context.Context, done func() bool) error {
	for {
		w.mu.Lock()
		if w.wake == nil {
			w.wake = make(chan struct{})
		}
		wake := w.wake
		w.waiting.Store(true) // before done is asked: a Notify that comes after what it sees closes wake
		w.mu.Unlock()
		if done() {
			return nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return base.ErrContextEnded
		}
	}
}

package nodes

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// Interval is the time between polls.
	Interval = 500 * time.Millisecond

	// Lease is how long what a poll learned may be relied upon, from the moment that it was sent. It is
	// shorter than any failover that a cluster starts by itself with a node timeout of two seconds or more.
	Lease = 1500 * time.Millisecond
)

// A Refresher is asked at every poll. It must return when ctx ends.
type Refresher interface {
	Refresh(ctx context.Context)
}

// A Watch polls the servers of one client. All methods may be called from any number of goroutines.
type Watch struct {
	rdb     redis.UniversalClient
	current atomic.Pointer[Map]
	doubt   atomic.Pointer[time.Time] // what was confirmed before does not count
	away    atomic.Bool               // of any server
	strange atomic.Bool               // a connection led elsewhere since the last poll
	moved   func()                    // nil in a cluster
	kick    chan struct{}
	quit    context.CancelFunc
	ended   chan struct{}

	mu         sync.Mutex
	begun      int           // polls
	done       int           // the last poll that ended
	changed    chan struct{} // closed and replaced when a poll ends
	failed     error         // of the last poll
	refreshers map[Refresher]struct{}
}

// New returns a watch that does nothing yet but to judge connections. Its OnConnect belongs into the
// options of the client that Start gets.
func New() *Watch {
	w := &Watch{
		kick:       make(chan struct{}, 1),
		changed:    make(chan struct{}),
		ended:      make(chan struct{}),
		refreshers: map[Refresher]struct{}{},
	}
	w.current.Store(&Map{})
	w.doubt.Store(&time.Time{})
	return w
}

// OnMove has a function called when connections to the one server that the client has may lead to several: it
// closes them all. It must be called before Start. In a cluster servers have addresses of their own.
func (w *Watch) OnMove(closeAll func()) { w.moved = closeAll }

// Start polls once and goes on in the background until Stop. The error is that of the first poll,
// after which nothing runs.
func (w *Watch) Start(ctx context.Context, rdb redis.UniversalClient) error {
	w.rdb = rdb
	for range 2 { // the connections of the first poll are new and put it in doubt
		if err := w.poll(ctx); err != nil {
			return err
		}
	}
	run, quit := context.WithCancel(context.Background())
	w.quit = quit
	go w.loop(run)
	return nil
}

// Stop ends the polls and waits for the one under way.
func (w *Watch) Stop() {
	w.quit()
	<-w.ended
}

// Add makes polls ask r too.
func (w *Watch) Add(r Refresher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refreshers[r] = struct{}{}
}

// Remove undoes Add. A poll under way may still ask r.
func (w *Watch) Remove(r Refresher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.refreshers, r)
}

// Map returns what the last poll saw.
func (w *Watch) Map() *Map { return w.current.Load() }

// Valid reports whether what was confirmed by a request sent at that time may be relied upon.
func (w *Watch) Valid(confirmed time.Time) bool {
	// The wall clock counts too: the monotonic one stands still while a machine sleeps.
	now := time.Now()
	age, wall := now.Sub(confirmed), now.Round(0).Sub(confirmed.Round(0))
	return max(age, wall) < Lease && confirmed.After(*w.doubt.Load())
}

// Poll waits for the end of a poll that begins after the call, and returns its error or that of ctx.
// If the last poll failed, it returns that error at once: no caller waits for a server that is away. One
// whose ctx has ended gets its error, however fast the poll were.
func (w *Watch) Poll(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.mu.Lock()
	target := w.begun + 1
	w.mu.Unlock()
	w.Kick()
	for {
		w.mu.Lock()
		done, failed, changed := w.done, w.failed, w.changed
		w.mu.Unlock()
		select {
		case <-w.ended: // the last poll may have been broken off, which is no error of Redis
			return redis.ErrClosed
		default:
		}
		if done >= target || failed != nil {
			return failed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-w.ended:
			return redis.ErrClosed
		}
	}
}

// Away returns an error while the owner of a slot is known to be away: it did not answer the last
// poll. To ask it would be to wait for a deadline.
func (w *Watch) Away(slot int) error {
	if !w.away.Load() {
		return nil
	}
	w.mu.Lock()
	failed := w.failed
	w.mu.Unlock()
	if failed != nil {
		return failed
	}
	return w.Map().NoMaster(slot)
}

// Lacks reports whether the last poll lacked the answer of some server.
func (w *Watch) Lacks() bool { return w.away.Load() }

// Changed returns a channel that is closed when the next poll ends.
func (w *Watch) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// Ended returns a channel that is closed when there are no more polls.
func (w *Watch) Ended() <-chan struct{} { return w.ended }

// Kick asks for a poll soon.
func (w *Watch) Kick() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

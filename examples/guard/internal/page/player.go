package page

import (
	"context"
	"errors"
	"sync"

	"github.com/siftkv/siftkv/examples/guard/internal/load"
	"github.com/siftkv/siftkv/examples/guard/internal/meter"
)

// errClosed means that the service ends.
var errClosed = errors.New("the service ends: nothing is played any more")

// A player plays one load at a time.
type player struct {
	config load.Config
	meter  *meter.Meter

	starting sync.Mutex // held by who starts a load, until it has begun

	mu      sync.Mutex
	cancel  context.CancelFunc // of the last load; nil before the first
	done    chan struct{}      // closed when the last load has ended
	running bool
	closed  bool
	failure string // why the last load could not be played
}

// play begins a scenario, after the load before has ended.
func (p *player) play(ctx context.Context, scenario load.Scenario) error {
	p.starting.Lock()
	defer p.starting.Unlock()
	if err := p.await(ctx); err != nil {
		return err
	}
	config := p.config
	config.Scenario, config.Seed = scenario, 0 // no two loads sign up the same users
	l, err := load.New(config)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errClosed
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	p.cancel, p.done, p.running, p.failure = cancel, done, true, ""
	p.meter.Play(l)
	go func() {
		defer close(done)
		defer cancel()
		_, err := l.Run(running)
		p.ended(err)
	}()
	return nil
}

// ended notes that a load is over. Wrong answers are in its report.
func (p *player) ended(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = false
	if err != nil && !errors.Is(err, load.ErrWrong) && !errors.Is(err, context.Canceled) {
		p.failure = err.Error()
	}
}

// stop ends the load that is played, if one is. Its visitors may still be leaving.
func (p *player) stop() (done <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancel == nil {
		return nil
	}
	p.cancel()
	return p.done
}

// await stops the load that is played, and waits until its visitors have left.
func (p *player) await(ctx context.Context) error {
	done := p.stop()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close ends the load that is played; none is begun after it.
func (p *player) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.await(context.Background()) // has no end of its own
}

// state returns whether a load is played, and why the last one could not be.
func (p *player) state() (running bool, failure string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running, p.failure
}

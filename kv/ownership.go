package kv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/base"
)

// ErrUnconfirmed is matched by errors of reads of a store whose Objects.MaxStaleness has passed since the object store
// last confirmed that no other writer has taken over. The error wraps why it did not answer. Reads go on once it does.
var ErrUnconfirmed = errors.New("siftkv: the object store has not confirmed that this is still the store's writer")

// Fenced returns an error that matches ErrFenced if this is the writer of a store in an object store and knows that
// another writer has taken over. Otherwise it returns nil. It sends no request. A writer learns it from its next
// request to write, or within Objects.MaxStaleness, and then calls Events.Failed too.
func (d *DB) Fenced() error {
	if err := d.failedError(); errors.Is(err, base.ErrFenced) {
		return err
	}
	return nil
}

// An ownership is what a writer in an object store knows of being the only one, with Objects.MaxStaleness. A reader
// pays nothing for it: while the store must not be read, it has no readState.
type ownership struct {
	d     *DB
	bound time.Duration
	stop  context.CancelFunc
	ended chan struct{} // the goroutine has ended

	mu     sync.Mutex // taken before DB.mu
	until  time.Time  // reads are within the bound before this moment
	expiry *time.Timer
	err    error // of the last question; nil: it was answered, or none was asked yet
}

// A refusal says whether reads are refused, and why they were refused last. DB.mu guards it.
type refusal struct {
	active bool
	reason error
	state  *readState // that readers will see when reads are admitted again; if active
}

// refuse hides what readers see, unless the store was taken over and it is hidden already.
func (r *refusal) refuse(seen *atomic.Pointer[readState], reason error) {
	if r.active && errors.Is(r.reason, base.ErrFenced) {
		return
	}
	if r.reason = reason; !r.active {
		r.active, r.state = true, seen.Swap(nil)
	}
}

// admit ends the refusal, unless the store was taken over.
func (r *refusal) admit(seen *atomic.Pointer[readState]) {
	if r.active && !errors.Is(r.reason, base.ErrFenced) {
		seen.Store(r.state)
		r.active, r.state = false, nil
	}
}

// swapState replaces the state that readers see, or will see, and returns it.
func (r *refusal) swapState(seen *atomic.Pointer[readState], next *readState) (old *readState) {
	if !r.active {
		return seen.Swap(next)
	}
	old, r.state = r.state, next
	return old
}

// beginOwnership confirms that a store that was just opened is still this writer's, and then again at intervals.
func (d *DB) beginOwnership(ctx context.Context) error {
	if d.objects == nil || d.opts.ReadOnly || d.objects.MaxStaleness == 0 {
		return nil
	}
	o := &ownership{d: d, bound: d.objects.MaxStaleness, ended: make(chan struct{})}
	begun := time.Now()
	switch err := d.objects.dir.Confirm(ctx); {
	case errors.Is(err, base.ErrFenced):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
	}
	o.until = begun.Add(o.bound)
	ctx, o.stop = context.WithCancel(context.Background())
	o.expiry = time.AfterFunc(time.Until(o.until), o.settle)
	d.mu.Lock()
	d.ownership = o
	d.mu.Unlock()
	go o.run(ctx)
	return nil
}

// end waits until no question is under way. A nil ownership has none.
func (o *ownership) end() {
	if o == nil {
		return
	}
	o.stop()
	<-o.ended
	o.expiry.Stop()
}

// run asks the object store until the store closes, or is another writer's.
func (o *ownership) run(ctx context.Context) {
	defer close(o.ended)
	pause := o.bound / 2
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		begun := time.Now()
		err := o.ask(ctx)
		if errors.Is(err, base.ErrFenced) {
			_ = o.d.fail(fatal, "confirming that it is the writer", err)
			return
		}
		pause = o.bound / 2
		o.mu.Lock()
		if o.err = err; err != nil {
			pause = o.bound / 8
		} else {
			o.until = begun.Add(o.bound)
			o.expiry.Reset(time.Until(o.until))
		}
		o.mu.Unlock()
		o.settle()
	}
}

// ask is one question. It does not outlast the bound.
func (o *ownership) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, o.bound)
	defer cancel()
	return o.d.objects.dir.Confirm(ctx)
}

// settle refuses reads if the bound has passed, and admits them if it has not.
func (o *ownership) settle() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Now().Before(o.until) {
		o.d.mu.Lock()
		o.d.refusal.admit(&o.d.state)
		o.d.mu.Unlock()
		return
	}
	err := o.err
	if err == nil {
		err = errors.New("a request has got no answer")
	}
	o.d.mu.Lock()
	defer o.d.mu.Unlock()
	o.d.refusal.refuse(&o.d.state, fmt.Errorf("%w for %v: %w", ErrUnconfirmed, o.bound, err))
}

// unreadable returns why a reader has found no state.
func (d *DB) unreadable() error {
	if d.closed.Load() {
		return ErrClosed
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refusal.reason
}

// readable returns an error if reads fail.
func (d *DB) readable() error {
	if d.state.Load() != nil {
		return nil
	}
	return d.unreadable()
}

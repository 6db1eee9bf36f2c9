package kv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
)

// CommitContext is Commit for a caller who may not want to wait: for a flush
// while memory is full, for compaction while level 0 is, or behind other writers
// who do. If ctx ends before the batch has its place in the log, CommitContext
// returns an error that matches ctx.Err(), and the batch is not written: not now
// and not later. From then on it waits for the disk alone, whatever becomes of
// ctx, and what it returns is the outcome. So an error that matches ctx.Err()
// always means that nothing happened.
func (b *Batch) CommitContext(ctx context.Context, o *WriteOptions) error {
	if b.err != nil {
		return b.err
	}
	return b.db.commit(ctx, b, nil, o)
}

// givenUp is the error of what ended with its context. What was being waited for
// stands before it.
func givenUp(ctx context.Context, what string) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(cause, err) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return fmt.Errorf("siftkv: %s: %w", what, err)
}

// errGivenUp tells the pipeline that the leader's context has ended before the
// group was written.
var errGivenUp = errors.New("siftkv: given up")

// A place says whether a request that may be given up has one in the log. The
// leader and the request's owner race for it; who changes placeNone wins.
type place struct{ state atomic.Uint32 }

const (
	placeNone uint32 = iota
	placeTaken
	placeGivenUp
)

func (p *place) take() bool   { return p.state.CompareAndSwap(placeNone, placeTaken) }
func (p *place) giveUp() bool { return p.state.CompareAndSwap(placeNone, placeGivenUp) }
func (p *place) lost() bool   { return p.state.Load() == placeGivenUp }

// next returns what a waiting writer is told to do: turnGiveUp if its context
// ended in time.
func (p *commitPipeline) next(r *commitRequest) turn {
	if r.done == nil {
		return <-r.turn
	}
	select {
	case t := <-r.turn:
		return t
	case <-r.done:
	}
	if p.withdraw(r) {
		return turnGiveUp
	}
	return <-r.turn
}

// withdraw takes a request out of the queue, or out of a group that is not
// written yet. It reports false if the request has its place.
func (p *commitPipeline) withdraw(r *commitRequest) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.waiting, r)
	if i < 0 {
		return r.place.giveUp()
	}
	p.waiting = slices.Delete(p.waiting, i, i+1)
	select {
	case <-r.turn: // in the queue, that is to lead
		p.handOn()
	default:
	}
	return true
}

// handOn tells the first who waits to lead. The caller holds p.mu.
func (p *commitPipeline) handOn() {
	if len(p.waiting) > 0 {
		p.waiting[0].turn <- turnLead
	} else {
		p.leading = false
	}
}

// putBack queues what is left of a group whose leader has given up, in front.
func (p *commitPipeline) putBack(group []*commitRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(group), func(r *commitRequest) bool { return r.place.lost() })
	p.waiting = append(left, p.waiting...)
}

// settle gives every request of a group its place in the log, and returns the
// group and its bytes without those that were given up. From here on nobody
// can give up.
func settle(group []*commitRequest, size int) ([]*commitRequest, int) {
	settled := group
	for i, r := range group {
		if r.done == nil || r.place.take() {
			if len(settled) < len(group) {
				settled = append(settled, r)
			}
			continue
		}
		if len(settled) == len(group) {
			// Whoever was given up is still answered by way of the group.
			settled = append(make([]*commitRequest, 0, len(group)), group[:i]...)
		}
		size -= r.size
	}
	return settled, size
}

// stopBackground returns a function that says whether work should go on: it returns
// errClosing if the store closes, and errGivenUp if ctx has ended.
func (d *DB) stopBackground(ctx context.Context) func() error {
	return func() error {
		switch {
		case d.closed.Load():
			return errClosing
		case ctx.Err() != nil:
			return errGivenUp
		}
		return nil
	}
}

// broadcastAt lets waits on d.progress notice that ctx has ended. The caller calls
// stop when it no longer waits.
func (d *DB) broadcastAt(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		d.mu.Lock()
		d.progress.Broadcast()
		d.mu.Unlock()
	})
}

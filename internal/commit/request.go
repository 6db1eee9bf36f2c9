package commit

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/memtable"
)

// A request is a batch that waits to be committed, or a function that waits to run between groups. With neither, it
// waits for a sync of what is visible. Until a leader has claimed it, its writer may abandon it when its context ends.
type request struct {
	batch       *Batch // nil: it writes nothing
	reads       Reads  // of a transaction: what must not have been written meanwhile
	arena       int    // what the batch takes in a memtable, in bytes
	size        int    // of the batch, in bytes
	run         func() error
	ctx         context.Context
	done        <-chan struct{} // of ctx; nil: it never ends
	state       atomic.Uint32   // if done is not nil
	level       Level
	seq         base.SeqNum // of its last write, once it has one; else of the last visible one
	syncs       bool        // it is applied, and waits for a sync
	err         error
	signal      chan signal
	applied     *sync.WaitGroup // when the signal is signalApply
	mem         *memtable.Memtable
	own         *memtable.Order // of a batch that gets a memtable of its own; nil: it is no such batch
	large       bool            // the batch has values for Store.Values
	withHandles *Batch          // the batch with handles of its large values; its memory is used again
}

// A signal tells a waiting writer what to do.
type signal uint8

const (
	signalDone      signal = iota // the batch is committed, or failed
	signalLead                    // lead the next group
	signalApply                   // put the batch into the memtable, and wait on
	signalGather                  // take all that wait at the gate through it, and wait on
	signalSync                    // sync for all that wait for it
	signalAbandoned               // the context has ended first: nothing is written
)

// The states of a request that may be abandoned. The leader, which gives it a place in
// the log, and its owner race for it: the one that changes waiting wins.
const (
	waiting uint32 = iota
	claimed
	abandoned
)

// gated reports whether the request waits at the gate while a sync is under way: it wants one, or is a function.
func (r *request) gated() bool { return r.level == Synced }

// alone reports whether the request is a group by itself.
func (r *request) alone() bool { return r.run != nil || r.own != nil }

// onlySyncs reports whether the request writes nothing.
func (r *request) onlySyncs() bool { return r.batch == nil }

// newRequest returns a request to fill in: one that was used before, or a new one if it
// can be abandoned, since a leader may hold on to it then.
func (p *Pipeline) newRequest(done <-chan struct{}) *request {
	if done == nil {
		if r, ok := p.requests.Get().(*request); ok {
			return r
		}
	}
	return &request{done: done, signal: make(chan signal, 1)}
}

// wait returns what a waiting writer is told to do: signalAbandoned if its context ended in time.
func (p *Pipeline) wait(r *request) signal {
	if r.done == nil {
		return <-r.signal
	}
	select {
	case s := <-r.signal:
		return s
	case <-r.done:
	}
	if p.withdraw(r) {
		return signalAbandoned
	}
	return <-r.signal
}

// withdraw takes a request out of the queue, or out of a group that is not written yet. It
// reports false if a leader has claimed the request.
func (p *Pipeline) withdraw(r *request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, r); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		if r.signaled() { // to lead
			p.passLeadership()
		}
		if r.gated() {
			p.leave(1)
		}
		return true
	}
	if i := slices.Index(p.gate.waiting, r); i >= 0 {
		p.gate.waiting = slices.Delete(p.gate.waiting, i, i+1)
		if r.signaled() { // to take the others through
			p.open()
		}
		return true
	}
	return r.state.CompareAndSwap(waiting, abandoned)
}

// signaled takes a signal that came too late.
func (r *request) signaled() bool {
	select {
	case <-r.signal:
		return true
	default:
		return false
	}
}

// passLeadership tells the first waiting request to lead. The caller holds p.mu.
func (p *Pipeline) passLeadership() {
	if len(p.waiting) > 0 {
		p.waiting[0].signal <- signalLead
	} else {
		p.leading = false
	}
}

// putBack puts the rest of a group in front of the queue after its leader has abandoned its own request.
func (p *Pipeline) putBack(group []*request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := 0
	stay := slices.DeleteFunc(slices.Clone(group), func(r *request) bool {
		gone := r.state.Load() == abandoned
		if gone && r.gated() {
			left++
		}
		return gone
	})
	p.waiting = append(stay, p.waiting...)
	p.leave(left)
}

package commit

import (
	"runtime"
	"slices"
)

// A gate keeps the requests that want a sync, and functions, out of the queue while a sync is under way. A new sync
// cannot begin before the one under way has ended, so a batch that wants one gains nothing by going to the log earlier.
// Together with later ones it takes one write call and one sync. Other batches go past it meanwhile; all of them are
// concurrent, and any order of theirs is right.
//
// The gate is shut from the moment that a request finds it open, until all that passed it together
// are done. Then the first waiting request takes all of them in.
type gate struct {
	shut     bool
	waiting  []*request
	inside   int // requests that have passed and are not done
	expected int // how many a sync served last
}

// maxYields bounds how often a request gives way before it takes others through the gate.
const maxYields = 4

// arrive puts a request before the gate, and takes it through if the gate is open. It
// reports whether the request is to lead. The caller holds p.mu.
func (p *Pipeline) arrive(r *request) (lead bool) {
	g := &p.gate
	g.waiting = append(g.waiting, r)
	if g.shut {
		return false
	}
	g.shut = true
	return p.enter()
}

// enter takes all waiting requests through the gate. The caller owns the first of them, and holds
// p.mu, which is released meanwhile. It reports whether the caller must lead.
//
// Writers that the last sync has served wake up and mostly return with their next write. A gate
// that opened at once would leave them behind: sixteen writers would then sync in turns of eight,
// and pay for twice as many syncs as they need. Yielding the processor a few times costs a
// microsecond if no writer comes; a sync costs a hundred or more. It never waits for an event.
func (p *Pipeline) enter() (lead bool) {
	g := &p.gate
	for range maxYields {
		if len(g.waiting) >= g.expected || g.waiting[0].run != nil {
			break
		}
		p.mu.Unlock()
		runtime.Gosched()
		p.mu.Lock()
	}
	g.inside = len(g.waiting)
	p.waiting = append(p.waiting, g.waiting...)
	clear(g.waiting)
	g.waiting = g.waiting[:0]
	lead = !p.leading
	p.leading = true
	return lead
}

// leave notes that n of those that passed the gate are done. The caller holds p.mu.
func (p *Pipeline) leave(n int) {
	if n == 0 {
		return
	}
	if p.gate.inside -= n; p.gate.inside == 0 {
		p.open()
	}
}

// open tells the first that waits at the gate to take all through. The caller holds p.mu.
func (p *Pipeline) open() {
	g := &p.gate
	if g.shut = len(g.waiting) > 0; g.shut {
		g.waiting[0].signal <- signalGather
	}
}

// turnBack puts those of the queue that have passed the gate in front of it again. The
// caller holds p.mu, and leads a group that will be synced.
func (p *Pipeline) turnBack() {
	var back []*request
	p.waiting = slices.DeleteFunc(p.waiting, func(r *request) bool {
		if r.gated() {
			back = append(back, r)
		}
		return r.gated()
	})
	p.gate.inside -= len(back)
	p.gate.waiting = append(back, p.gate.waiting...)
}

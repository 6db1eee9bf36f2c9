package commit

import (
	"fmt"
	"sync"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/wal"
)

// A syncs is the sync that is under way, or that the leader's group begins. One runs at a time, outside leadership:
// groups that want none are written, applied and published meanwhile.
type syncs struct {
	// Guarded by mu of the pipeline.
	running bool
	ended   sync.Cond  // a sync has ended
	count   uint64     // of syncs that have ended
	group   []*request // the requests that it serves, and refused transactions that wait for its end
	gated   int        // how many of them it serves

	// The leader's while no sync runs, then the syncing writer's.
	last base.SeqNum // of the writes that it makes durable
	log  *wal.Writer // where they are
}

// sync makes the group durable that waits for it, and visible unless it is so already. The
// caller's request is own; the others are told.
//
// If it fails, what is not visible at that moment never will be, see logs. What is visible
// stays, and its writers get an error that matches base.ErrNotDurable.
func (p *Pipeline) sync(own *request) {
	s := &p.syncs
	err := p.syncLogs(s.log.ID())
	durable := err == nil
	if durable {
		p.durable.Store(uint64(s.last))
		err = p.publish(s.last)
	}
	if err == nil {
		s.log.HoldMarks(false)
	}
	if err != nil {
		err = p.Fail(writingLog, err)
	}
	p.mu.Lock()
	s.running = false
	s.count++
	group, gated := s.group, s.gated
	p.mu.Unlock()
	s.ended.Broadcast()
	visible := base.SeqNum(p.store.Visible.Load()) // for good, if there was an error
	for _, r := range group {
		switch {
		case err == nil, r.err != nil, durable && r.seq <= visible:
		case r.seq <= visible:
			r.err = fmt.Errorf("%w: %w", base.ErrNotDurable, err)
		default:
			r.err = err
		}
		if r != own {
			r.signal <- signalDone
		}
	}
	p.mu.Lock()
	clear(group)
	s.group, s.gated, p.gate.expected = group[:0], 0, gated
	p.leave(gated)
	p.mu.Unlock()
}

// AwaitSync returns when the sync that is under way, if there is one, has ended. By then
// all that was applied at the time of the call is visible, or never will be.
func (p *Pipeline) AwaitSync() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := p.syncs.count; p.syncs.running && p.syncs.count == n; {
		p.syncs.ended.Wait()
	}
}

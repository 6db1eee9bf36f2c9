package kv

import "runtime"

// The writers of a group wake up when it is done, and mostly come back with their
// next write. A new leader that took its group at once would leave without them:
// sixteen writers would then sync in turns of eight, and pay for twice as many syncs
// as they need. Giving up the processor a few times costs a microsecond if nobody
// comes, against the hundred or more of a sync.

// mostYields bounds how often a leader gives way before a sync.
const mostYields = 4

// waitForReturn gives the writers of the last group a chance to be in the next one,
// if that is going to sync. It never waits for an event. The caller leads.
func (p *commitPipeline) waitForReturn() {
	if len(p.group) <= 1 {
		return // a lone writer leads already
	}
	for range mostYields {
		p.mu.Lock()
		first := p.waiting[0]
		complete := len(p.waiting) >= len(p.group)
		p.mu.Unlock()
		if complete || first.run != nil || first.level != durableSync {
			return
		}
		runtime.Gosched()
	}
}

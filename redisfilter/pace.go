package redisfilter

import (
	"sync"
	"time"
)

// A pace keeps a set that loses values soon after each load, as on a server that evicts, from being loaded again and
// again. The time from a loss to the load doubles with each generation that did not last. A generation that lasted
// ends that. It is about loads of the background; a program's Load does not ask it.
type pace struct {
	mu         sync.Mutex
	looked     bool
	generation string    // in use
	since      time.Time // when it was taken into use; zero if that is not known
	brief      int       // generations in a row that were lost before they lasted
	due        time.Time // when it may be replaced, if it was lost
}

const (
	lasting   = time.Minute // a generation lasts that is whole for so long
	firstRest = time.Second
	maxRest   = 5 * time.Minute
)

// uses notes the generation in use, "" for none.
func (p *pace) uses(generation string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.looked
	p.looked = true
	if generation == p.generation {
		return
	}
	p.generation, p.since, p.due = generation, now, time.Time{}
	if first { // it may have been there for long
		p.since = time.Time{}
	}
}

// lost notes that a generation was found to lack values, and returns how long the background waits before it loads
// the next.
func (p *pace) lost(generation string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if generation != p.generation {
		return 0
	}
	if now.Sub(p.since) >= lasting {
		p.brief = 0
		return 0
	}
	rest := restAfter(p.brief)
	p.brief++
	p.due = now.Add(rest)
	return rest
}

// restAfter returns how long loads rest. brief is the number of generations before the lost one that did not last.
func restAfter(brief int) time.Duration {
	rest := firstRest
	for range brief {
		rest = min(2*rest, maxRest)
	}
	return rest
}

// resting reports whether a generation that was lost must not be replaced yet.
func (p *pace) resting(generation string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return generation != "" && generation == p.generation && now.Before(p.due)
}

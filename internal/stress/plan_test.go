package stress

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/siftkv/siftkv/internal/manifest"
)

// A rule lets calls of the file system fail or take time.
type rule struct {
	name  string   // for counts
	ops   []string // of Call
	kinds []manifest.FileKind
	inDir string // calls whose path begins so; empty: all

	ended  bool // only logs that have a successor
	nth    int  // of the files of these kinds that were created, the one; 0: all
	oneOf  int  // matching calls, one at random; 0: all
	after  int  // matching calls that pass first
	times  int  // that it strikes; -1: until the plan is lifted
	pause  int  // after times strikes, so many calls pass, and it begins anew
	err    error
	short  bool  // writes write a part
	room   int64 // bytes that the disk has; 0: any number
	delay  time.Duration
	cut    bool
	kill   bool
	then   *rule // holds from the first strike on
	closes bool  // holds only from the beginning of Close on

	seen, struck int
	file         uint64 // the nth one's number
}

// A plan says what goes wrong with the calls of a session. The zero value is that nothing
// does.
type plan struct {
	mu        sync.Mutex
	rng       *rand.Rand
	rules     []*rule
	lifted    bool
	closing   bool
	newestWAL uint64
	created   map[manifest.FileKind]int
	strikes   map[string]int // by the names of rules
}

func newPlan(rng *rand.Rand) *plan {
	return &plan{rng: rng, created: map[manifest.FileKind]int{}, strikes: map[string]int{}}
}

// lift ends all that goes wrong.
func (p *plan) lift() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lifted = true
}

// set puts rules in force in place of those that are.
func (p *plan) set(rules ...*rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules, p.lifted = rules, false
}

// close says that Close begins.
func (p *plan) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closing = true
}

// decide is for Disk.Mount.
func (p *plan) decide(c Call) Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.Op == "create" {
		p.created[c.Kind]++
		if c.Kind == manifest.FileWAL {
			p.newestWAL = max(p.newestWAL, c.Num)
		}
	}
	var o Outcome
	if p.lifted {
		return o
	}
	for _, r := range slices.Clone(p.rules) {
		if c.Op == "create" && r.nth > 0 && slices.Contains(r.kinds, c.Kind) && p.created[c.Kind] == r.nth {
			r.file = c.Num
		}
		if !r.matches(c, p) || !r.strikes(p.rng) {
			continue
		}
		if r.room > 0 {
			o.Room = r.room
			continue
		}
		p.strikes[r.name]++
		if r.then != nil {
			p.rules = append(p.rules, r.then)
			r.then = nil
		}
		o.Delay += r.delay
		o.Cut, o.Kill = o.Cut || r.cut, o.Kill || r.kill
		if r.err != nil && o.Err == nil {
			o.Err = r.err
		}
		if (r.short || r.cut || r.kill) && c.Bytes > 0 {
			o.Short = p.rng.IntN(c.Bytes + 1)
		}
	}
	return o
}

func (r *rule) matches(c Call, p *plan) bool {
	switch {
	case len(r.ops) > 0 && !slices.Contains(r.ops, c.Op):
	case len(r.kinds) > 0 && !slices.Contains(r.kinds, c.Kind):
	case !strings.HasPrefix(c.Path, r.inDir):
	case r.ended && (c.Kind != manifest.FileWAL || c.Num >= p.newestWAL):
	case r.nth > 0 && (r.file == 0 || c.Num != r.file):
	case r.closes && !p.closing:
	default:
		return true
	}
	return false
}

// strikes says whether the rule strikes at a call that it matches.
func (r *rule) strikes(rng *rand.Rand) bool {
	if r.oneOf > 1 && rng.IntN(r.oneOf) > 0 {
		return false
	}
	r.seen++
	switch {
	case r.seen <= r.after:
		return false
	case r.times < 0 || r.struck < r.times:
		r.struck++
		return true
	case r.pause > 0:
		r.seen, r.struck, r.after = 0, 0, r.pause
	}
	return false
}

var (
	anyKind     []manifest.FileKind
	logs        = []manifest.FileKind{manifest.FileWAL}
	tables      = []manifest.FileKind{manifest.FileTable}
	blobs       = []manifest.FileKind{manifest.FileBlob}
	descriptors = []manifest.FileKind{manifest.FileManifest, manifest.FileCurrent, manifest.FileTemp,
		manifest.FileOptions}
	slotFiles = []manifest.FileKind{manifest.FileSlot, manifest.FileTemp, manifest.FileKept}
)

// drawRule returns a fault of a wanted kind; nil if none is.
func drawRule(rng *rand.Rand, want featureSet) *rule {
	kinds := [][]manifest.FileKind{anyKind, logs, logs, tables, blobs, descriptors, slotFiles}[rng.IntN(7)]
	after := rng.IntN(1 + rng.IntN(60))
	if len(kinds) == 1 {
		after = rng.IntN(1 + rng.IntN(300))
	}
	all := []struct {
		feature string
		rule    *rule
	}{
		{"sync", &rule{name: "a sync fails", ops: []string{"sync"}, kinds: kinds, after: after, times: 1,
			err: syscall.EIO, delay: drawDelay(rng)}},
		{"sync", &rule{name: "a sync of an ended log fails", ops: []string{"sync"}, kinds: logs, ended: true,
			times: 1, err: syscall.EIO}},
		{"write", &rule{name: "a write fails", ops: []string{"write"}, kinds: kinds, after: after, times: 1,
			err: syscall.EIO, short: true}},
		{"nospace", &rule{name: "no space", ops: []string{"create", "write", "mkdir", "link", "rename"}, after: after,
			times: 1 + rng.IntN(30), err: syscall.ENOSPC, short: true}},
		{"nospace", &rule{name: "no space", ops: []string{"create", "write"}, after: after, times: 1 + rng.IntN(10),
			pause: 1 + rng.IntN(100), err: syscall.ENOSPC, short: true}},
		{"emfile", &rule{name: "too many open files", ops: []string{"create", "open", "lock"}, after: rng.IntN(30),
			times: 1 + rng.IntN(8), err: syscall.EMFILE}},
		{"read", &rule{name: "a read fails", ops: []string{"read"}, after: after, times: 1 + rng.IntN(4),
			err: syscall.EIO}},
		{"names", &rule{name: "a change of names fails",
			ops: []string{"rename", "remove", "link", "syncdir", "mkdir", "lock"}, after: rng.IntN(30), times: 1,
			err: syscall.EIO}},
		{"names", &rule{name: "a look at names fails", ops: []string{"list", "stat"}, after: rng.IntN(20), times: 1,
			err: syscall.EIO}},
		{"latency", &rule{name: "latency", ops: []string{"sync", "syncdir", "create"}, kinds: kinds, oneOf: 3,
			times: -1, delay: drawDelay(rng)}},
		{"badfile", &rule{name: "a file cannot be read", ops: []string{"open", "read"},
			kinds: [][]manifest.FileKind{tables, blobs}[rng.IntN(2)], nth: 1 + rng.IntN(5), times: -1,
			err: syscall.EIO}},
	}
	for range 4 {
		if c := all[rng.IntN(len(all))]; want[c.feature] {
			return c.rule
		}
	}
	return nil
}

func drawDelay(rng *rand.Rand) time.Duration {
	return time.Duration(rng.IntN(1+rng.IntN(3000))) * time.Microsecond
}

// smallDisk gives the disk 1.8 times what is on it, and enough to open a new store. Every other one says what is free.
func smallDisk(rng *rand.Rand, used int64) *rule {
	r := &rule{name: "a small disk", ops: []string{"write", "free"}, times: -1, room: max(used*9/5, 256<<10)}
	if rng.IntN(2) == 0 {
		r.ops = r.ops[:1]
	}
	return r
}

// panics lets functions of the application panic.
func panics(rng *rand.Rand) *rule {
	return &rule{name: "the application panics", ops: []string{opMerge, opTell}, oneOf: 1 + rng.IntN(20), times: -1,
		err: errPanic}
}

var changing = []string{"create", "write", "sync", "syncdir", "rename", "remove", "link", "mkdir"}

// cutRule cuts the power at one of the next calls that change the disk.
func cutRule(rng *rand.Rand, within int) *rule {
	return &rule{name: "power cut", ops: changing, after: rng.IntN(within), times: 1, cut: true}
}

// killRule lets the process die at one of the next calls that change the disk.
func killRule(rng *rand.Rand, within int) *rule {
	return &rule{name: "the process dies", ops: changing, after: rng.IntN(within), times: 1, kill: true}
}

func (p *plan) isLifted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lifted
}

// rulesNow returns the rules in force.
func (p *plan) rulesNow() []*rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lifted {
		return nil
	}
	return slices.Clone(p.rules)
}

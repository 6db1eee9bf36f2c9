package load

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/siftkv/siftkv/examples/guard/internal/stats"
)

// A Kind is what a request asks for.
type Kind string

// The kinds of requests.
const (
	Absent    Kind = "absent keys" // users that do not exist
	Lookups   Kind = "lookups"     // users that exist
	Names     Kind = "names"       // whether a name is taken
	SignUps   Kind = "sign-ups"
	Feeds     Kind = "feeds"
	BlackList Kind = "black list" // to look, to ban, to lift a ban
)

// Kinds are all of them, in the order of reports.
var Kinds = []Kind{Absent, Lookups, Names, SignUps, Feeds, BlackList}

// Figures are what became of some requests. They never go down while a load runs.
type Figures struct {
	Requests uint64         `json:"requests"`
	Failed   uint64         `json:"failed"` // no answer, or one that says "not now" (status 5xx or 429)
	Wrong    uint64         `json:"wrong"`  // answers that are not true
	Status   map[int]uint64 `json:"status"` // requests by status; 0: no answer
	Latency  stats.Latency  `json:"latency"`
}

// Since returns the figures of what happened after before.
func (f Figures) Since(before Figures) Figures {
	d := Figures{
		Requests: f.Requests - before.Requests, Failed: f.Failed - before.Failed, Wrong: f.Wrong - before.Wrong,
		Status: make(map[int]uint64), Latency: f.Latency.Since(before.Latency),
	}
	for status, n := range f.Status {
		if n -= before.Status[status]; n > 0 {
			d.Status[status] = n
		}
	}
	return d
}

// A Report says how a load went, or how it goes.
type Report struct {
	Scenario Scenario         `json:"scenario"`
	Seconds  float64          `json:"seconds"`  // it has run
	Late     uint64           `json:"late"`     // visitors whose turn did not come before the time was over
	Kinds    map[Kind]Figures `json:"kinds"`    // of which there were requests
	Everyone Figures          `json:"everyone"` // all kinds
	Users    Figures          `json:"users"`    // all kinds but Absent: visitors who mean well
	// Pages of feeds with an item that the user was shown before: no lie, as a service whose filter
	// does not answer may choose to show things twice.
	Repeated uint64   `json:"repeated"`
	Mistakes []string `json:"mistakes"` // some of the wrong answers, and some failures
}

// PerSecond returns how many requests were answered in a second.
func (r Report) PerSecond() float64 {
	if r.Seconds == 0 {
		return 0
	}
	return float64(r.Everyone.Requests) / r.Seconds
}

// ErrWrong means that the service gave answers which are not true.
var ErrWrong = errors.New("wrong answers")

// Err returns an error that wraps ErrWrong if there were wrong answers.
func (r Report) Err() error {
	if r.Everyone.Wrong == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d of %d requests; the first: %s", ErrWrong, r.Everyone.Wrong, r.Everyone.Requests,
		r.Mistakes[0])
}

// A tally collects figures. It may be used from many goroutines.
type tally struct {
	mu              sync.Mutex
	kinds           map[Kind]*count
	everyone, users *count
	repeated        uint64
	wrong, failures []string
}

// A count is the figures of one kind while they grow.
type count struct {
	figures Figures
	times   *stats.Histogram
}

// maxMistakes is how many wrong answers, and how many failures, a report quotes.
const maxMistakes = 5

func newTally() *tally {
	return &tally{kinds: make(map[Kind]*count), everyone: newCount(), users: newCount()}
}

func newCount() *count {
	return &count{figures: Figures{Status: make(map[int]uint64)}, times: stats.NewHistogram()}
}

// An outcome is what became of one request.
type outcome struct {
	kind   Kind
	took   time.Duration
	status int   // 0: no answer
	failed error // why there was no answer, or none that tells anything
	wrong  error // why the answer is not true
}

func (t *tally) add(o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kinds[o.kind] == nil {
		t.kinds[o.kind] = newCount()
	}
	t.kinds[o.kind].add(o)
	t.everyone.add(o)
	if o.kind != Absent {
		t.users.add(o)
	}
	t.wrong = quote(t.wrong, o.wrong)
	t.failures = quote(t.failures, o.failed)
}

func (c *count) add(o outcome) {
	c.figures.Requests++
	c.figures.Status[o.status]++
	if o.failed != nil {
		c.figures.Failed++
	}
	if o.wrong != nil {
		c.figures.Wrong++
	}
	c.times.Record(o.took)
}

// repeat counts a page of a feed that showed an item again.
func (t *tally) repeat() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.repeated++
}

// quote keeps an error if it is one of the first that differ.
func quote(list []string, err error) []string {
	if err == nil || len(list) == maxMistakes || slices.Contains(list, err.Error()) {
		return list
	}
	return append(list, err.Error())
}

// snapshot returns the figures so far.
func (c *count) snapshot() Figures {
	f := c.figures
	f.Status = maps.Clone(f.Status)
	f.Latency = c.times.Snapshot()
	return f
}

// fill puts the figures so far into a report.
func (t *tally) fill(r *Report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Kinds = make(map[Kind]Figures, len(t.kinds))
	for kind, c := range t.kinds {
		r.Kinds[kind] = c.snapshot()
	}
	r.Everyone, r.Users = t.everyone.snapshot(), t.users.snapshot()
	r.Repeated = t.repeated
	r.Mistakes = slices.Concat(t.wrong, t.failures)
}

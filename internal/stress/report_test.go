package stress

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Counts are what happened in a run.
type counts struct {
	mu      sync.Mutex
	actions map[string]int
	endings map[ending]int
	strikes map[string]int
	disk    DiskCounts

	lives, rounds                         int
	checked, lost, came                   int
	failedOpens, failedCloses, cutsInOpen int
	repairs, modes, garbageChecks, swaps  int
	spaceChecks                           int
	scenarios                             map[string]int

	objectLives, objectDeaths, fenced, views int
	objectEndings                            map[string]int
	slots                                    map[string]int
}

func newCounts() *counts {
	return &counts{actions: map[string]int{}, endings: map[ending]int{}, strikes: map[string]int{},
		scenarios: map[string]int{}, objectEndings: map[string]int{}, slots: map[string]int{}}
}

func (c *counts) count(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.actions[name]++
}

func (l *life) count(name string) {
	l.counts.count(name)
	l.oracle.journal.write(record{Kind: recordCount, Name: name})
}

func (c *counts) slot(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slots[what]++
}

func (l *life) slot(what string) {
	l.counts.slot(what)
	l.oracle.journal.write(record{Kind: recordSlot, Name: what})
}

func (c *counts) settled(v verdict) {
	c.checked += v.checked
	c.lost += v.lost
	c.came += v.came
}

func (c *counts) ended(e ending) { c.endings[e]++ }

// add takes in what a round has struck.
func (c *counts) add(r *round) {
	c.rounds++
	if r.scenario != "" {
		c.scenarios[r.scenario]++
	}
	r.plan.mu.Lock()
	defer r.plan.mu.Unlock()
	for name, n := range r.plan.strikes {
		c.strikes[name] += n
	}
}

func (c *counts) addDisk(d DiskCounts) {
	c.disk.Calls += d.Calls
	c.disk.Changes += d.Changes
	c.disk.Lies += d.Lies
	c.disk.Cuts += d.Cuts
	c.disk.Kills += d.Kills
	c.disk.Full += d.Full
}

// A Report says what a run did and found.
type Report struct {
	Findings []Found
	Elapsed  time.Duration
	counts   *counts
}

// A Found is a finding, and how to come to it again.
type Found struct {
	Finding
	Seed   uint64 // of the life
	Round  string
	Replay string
	After  time.Duration
}

// String is for people.
func (f *Found) String() string {
	return fmt.Sprintf("FOUND: %s\n  %s\n  life %d, %s\n  after %v; again: %s", f.Kind, f.text(), f.Seed, f.Round,
		f.After.Round(time.Millisecond), f.Replay)
}

// AcknowledgedChecked returns how many acknowledged operations were found to be there after
// an opening.
func (r *Report) AcknowledgedChecked() int { return r.counts.checked }

// Rounds returns how many rounds there were.
func (r *Report) Rounds() int { return r.counts.rounds }

// Cuts returns how often the power was cut.
func (r *Report) Cuts() uint64 { return r.counts.disk.Cuts }

// Changes returns how many changes consumers of slots have taken.
func (r *Report) Changes() int { return r.counts.slots["changes"] }

// WriteText writes the counts for people.
func (r *Report) WriteText(w io.Writer) error {
	c := r.counts
	var b strings.Builder
	fmt.Fprintf(&b, "%d rounds in %d lives in %v\n", c.rounds, c.lives, r.Elapsed.Round(time.Second))
	fmt.Fprintf(&b, "crashes: %d power cuts (%d of them during recovery), %d deaths of the process\n", c.disk.Cuts,
		c.cutsInOpen, c.disk.Kills)
	fmt.Fprintf(&b, "acknowledged writes checked after an opening: %d there, %d lost as they may be; %d that had "+
		"failed were there, as they may be\n", c.checked, c.lost, c.came)
	fmt.Fprintf(&b, "opens that failed and were repeated: %d; failed closes: %d; copies repaired and compared: "+
		"%d; directories swapped: %d; opened in other modes: %d; looks for garbage: %d; at the space of "+
		"blob files: %d\n", c.failedOpens, c.failedCloses, c.repairs, c.swaps, c.modes,
		c.garbageChecks, c.spaceChecks)
	fmt.Fprintf(&b, "calls of the file system: %d, %d of which change the disk; syncs that lied: %d; "+
		"writes without room on a small disk: %d\n", c.disk.Calls, c.disk.Changes, c.disk.Lies, c.disk.Full)
	fmt.Fprintf(&b, "lives in an object store: %d; processes killed: %d; fenced: %d; views of readers in other "+
		"processes: %d\n", c.objectLives, c.objectDeaths, c.fenced, c.views)
	list(&b, "endings in an object store", c.objectEndings)
	list(&b, "faults", c.strikes)
	list(&b, "operations", c.actions)
	list(&b, "scenarios", c.scenarios)
	list(&b, "slots", c.slots)
	endings := map[string]int{}
	for e, n := range c.endings {
		endings[e.String()] = n
	}
	list(&b, "endings", endings)
	fmt.Fprintf(&b, "findings: %d\n", len(r.Findings))
	_, err := io.WriteString(w, b.String())
	return err
}

func list(b *strings.Builder, what string, m map[string]int) {
	fmt.Fprintf(b, "%s:", what)
	for i, name := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(b, " %s %d", name, m[name])
	}
	b.WriteString("\n")
}

package memtable

import (
	"sync"
	"sync/atomic"
	"time"
)

// A memtable is flushed when it is full, and some should be flushed before (see compaction.Pending). A watch says when
// a memtable is examined for that: once it is at rest, when values in it expire, and when it has many tombstones.
// Writers read two atomic words. A timer runs while writes come. It stops when the store has been idle for up to 40
// seconds, unless values are about to expire.

const (
	// restInterval is the time between two measurements of the memtable. It is at rest if it has grown by less than a
	// quarter meanwhile. A memtable that grows faster is full soon, or most of it is new.
	restInterval = 10 * time.Second
	growthPart   = 4

	// MinTombstones is the number of point tombstones at which a memtable is examined first. It is examined again
	// when it has a quarter more: so examinations take O(1) for each entry and tombstone.
	MinTombstones  = 6000
	tombstonesPart = 4
)

// A Watch says when the active memtable is examined. All methods are safe for concurrent use.
type Watch struct {
	measure func() (log uint64, size int64) // of the active memtable
	examine func() (again time.Duration)    // returns when to examine it again; 0: when it has grown

	armed      atomic.Bool  // the timer measures growth: writers need not start it
	tombstones atomic.Int64 // the number of them at which the memtable is examined next

	turn chan struct{} // full while the memtable is examined; a mutex would stop the clock of a synctest bubble

	mu      sync.Mutex
	idle    sync.Cond // pending has become 0
	pending int       // goroutines of the watch
	timer   *time.Timer
	stopped bool
	growth  growth
	again   time.Time // when to examine the memtable again; zero: when it has grown
}

// growth is what is known of the size of the active memtable.
type growth struct {
	log      uint64 // its log, which names it
	size     int64  // when it was measured
	examined int64  // when it was examined
}

// A watchStep is what follows from a measurement.
type watchStep int

// The steps.
const (
	stepMeasure watchStep = iota // again, after an interval
	stepExamine
	stepStop // until the next write
)

// next returns what is known after a measurement, and the step that follows. If due is set, the memtable must be
// examined although it has not grown.
func (g growth) next(log uint64, size int64, due bool) (growth, watchStep) {
	if log != g.log {
		return growth{log: log, size: size}, stepMeasure
	}
	grown := size - g.size
	g.size = size
	switch {
	case grown*growthPart > size:
		return g, stepMeasure
	case due || (size-g.examined)*growthPart > size:
		g.examined = size
		return g, stepExamine
	case grown > 0:
		return g, stepMeasure
	}
	return g, stepStop
}

// Attach prepares the watch for its first use.
func (w *Watch) Attach(measure func() (uint64, int64), examine func() time.Duration) {
	w.measure, w.examine, w.idle.L, w.turn = measure, examine, &w.mu, make(chan struct{}, 1)
	w.Renew()
}

// Renew notes that the active memtable is a new one.
func (w *Watch) Renew() { w.tombstones.Store(MinTombstones) }

// Written notes a write to the active memtable. The caller leads the pipeline.
func (w *Watch) Written(m *Memtable) {
	if !w.armed.Load() {
		w.armed.Store(true)
		w.mu.Lock()
		w.restart(restInterval)
		w.mu.Unlock()
	}
	if n := int64(m.Deletes()); n >= w.tombstones.Load() {
		w.tombstones.Store(n + n/tombstonesPart)
		if w.Begin() {
			go w.Run(func() { w.examine() })
		}
	}
}

// Idle reports whether no timer measures growth: the next write starts one.
func (w *Watch) Idle() bool { return !w.armed.Load() }

// restart starts the timer, or sets it. The caller holds w.mu.
func (w *Watch) restart(wait time.Duration) {
	switch {
	case w.stopped:
	case w.timer == nil:
		w.timer = time.AfterFunc(wait, w.fire)
	default:
		w.timer.Reset(wait)
	}
}

// Begin counts a goroutine of the watch. It reports false if the watch was stopped.
func (w *Watch) Begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped {
		w.pending++
	}
	return !w.stopped
}

// Run calls f in its turn, in a goroutine that was counted.
func (w *Watch) Run(f func()) {
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.pending--; w.pending == 0 {
			w.idle.Broadcast()
		}
	}()
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	f()
}

// fire is what the timer calls.
func (w *Watch) fire() {
	if w.Begin() {
		w.Run(w.step)
	}
}

// step measures the memtable and does what follows from it. The caller has the turn.
func (w *Watch) step() {
	log, size := w.measure()
	w.mu.Lock()
	if log != w.growth.log {
		w.again = time.Time{}
	}
	due := !w.again.IsZero() && !time.Now().Before(w.again)
	var s watchStep
	w.growth, s = w.growth.next(log, size, due)
	w.mu.Unlock()
	var again time.Duration
	if s == stepExamine {
		again = w.examine()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if s == stepExamine {
		if w.again = (time.Time{}); again > 0 {
			w.again = time.Now().Add(again)
		}
	}
	if s != stepStop {
		w.restart(restInterval)
		return
	}
	w.armed.Store(false)
	if !w.again.IsZero() {
		w.restart(time.Until(w.again))
	}
}

// Wait returns when the memtable is not being examined, and no examination is about to begin.
func (w *Watch) Wait() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.pending > 0 {
		w.idle.Wait()
	}
}

// Stop ends the watch for good.
func (w *Watch) Stop() {
	w.mu.Lock()
	w.stopped = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	w.Wait()
}

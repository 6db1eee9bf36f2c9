package stress

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/kv"
)

// storeDir is where the store is on its disk.
const storeDir = "db"

// An ending says how a round ends.
type ending uint8

const (
	endClose       ending = iota // Close, with all that goes wrong going on
	endCloseWell                 // Close, when nothing goes wrong any more
	endCutInClose                // the power is cut during Close
	endCut                       // the power is cut while workers work
	endKill                      // the process dies while workers work
	numberOfEnding               //
)

func (e ending) String() string {
	return []string{"Close", "Close on a disk that works", "a power cut during Close", "a power cut",
		"the process dies"}[e]
}

// A round opens a store, checks it, disturbs it and ends it.
type round struct {
	*life
	number  int
	rng     *rand.Rand
	setup   setup
	mix     mix
	plan    *plan
	end     ending
	after   bool // the power is cut after Close
	quiet   bool // garbage is looked for before Close
	doctor  bool // a copy is repaired before the store is opened
	modes   bool // a copy is opened in other recovery modes
	others  *Disk
	inOpen  []*rule
	planned []*rule
	cuts    uint64 // on the disk before the round

	db             *kv.DB
	session, plain *Session
	watch          *watch
	workersDone    atomic.Bool
	stopped        atomic.Bool // a finding ends the round
	quietAfterEach bool        // a single worker waits for the store after each operation
	restless       bool        // there is no use in that

	// How it ends.
	closeAt     int64         // so many operations into the round, Close is called; 0: after them
	operations  atomic.Int64  // that have ended
	closeNow    chan struct{} // closed when it is time
	closing     atomic.Bool   // Close has been called
	closed      atomic.Bool   // and has returned
	wasGone     bool          // the store was gone before
	closeResult error
	scenario    string
}

func (r *round) gone() bool {
	select {
	case <-r.session.Gone():
		return true
	default:
		return false
	}
}

func (r *round) over() bool { return r.stopped.Load() || r.gone() || r.closed.Load() || r.isFenced() }

func (r *round) String() string {
	s := fmt.Sprintf("round %d: %s; ends by %v", r.number, r.setup.text+", "+r.setup.separation(), r.end)
	if r.closeAt > 0 {
		s += fmt.Sprintf(" beside workers, after %d operations", r.closeAt)
	}
	if r.after {
		s += ", then a power cut"
	}
	if r.scenario != "" {
		s += "; scenario " + r.scenario
	}
	return s
}

// run goes through the round.
func (r *round) run(ctx context.Context) *Finding {
	r.watch = startWatch(r.patience, r.changes)
	defer r.watch.close()
	done := make(chan *Finding, 1)
	r.goesOn = true
	go func() { done <- r.body() }()
	select {
	case f := <-done:
		r.goesOn = false
		return f
	case f := <-r.watch.hung:
		f.Text = r.shape() + f.Text
		return f
	case <-ctx.Done():
		return nil
	}
}

// changes counts what the store does to its disk, or its object store.
func (r *round) changes() uint64 {
	n := r.disk.Counts().Changes
	if r.bucket != nil {
		n += uint64(r.bucket.faults.Calls())
	}
	return n
}

// shape describes a store that stands still, unless it holds up those who ask too.
func (r *round) shape() string {
	if r.db == nil {
		return ""
	}
	shape := make(chan string, 1)
	go func() {
		m := r.db.Metrics()
		var b strings.Builder
		fmt.Fprintf(&b, "failure %q, %d memtables, %d running compactions, %d failed ones, %d tables left alone; "+
			"files in runs of levels:",
			m.Failure, m.Memtables, m.RunningCompactions, m.FailedCompactions, m.QuarantinedTables)
		for _, l := range m.Levels {
			fmt.Fprintf(&b, " %d in %d", l.Files, l.Runs)
		}
		shape <- b.String() + "; "
	}()
	select {
	case s := <-shape:
		return s
	case <-time.After(r.patience):
		return "Metrics does not return either; "
	}
}

func (r *round) body() *Finding {
	if f := r.open(); f != nil {
		return f
	}
	if f := r.work(); f != nil {
		r.stopped.Store(true)
		r.plan.lift()
		_ = r.db.Close() // so that its goroutines end
		return f
	}
	return r.settleEnd()
}

// mount gives the round a new session, as a new process has.
func (r *round) mount() {
	r.session, r.plain = r.disk.Mount(r.plan.decide), r.disk.Mount(nil)
	for _, c := range r.consumers {
		if c.away != nil {
			c.away.plan.Store(r.plan)
		}
	}
}

// open opens the store, with all that goes wrong meanwhile, and checks it.
func (r *round) open() *Finding {
	r.mount()
	if f := r.setup.parse(); f != nil {
		return f
	}
	r.cuts = r.disk.Counts().Cuts
	r.plan.set(r.inOpen...)
	for attempt := 0; ; attempt++ {
		if attempt == 3 || len(r.inOpen) == 0 {
			r.plan.lift()
		}
		if f := r.copy(attempt); f != nil {
			return f
		}
		if attempt == 0 && r.modes {
			r.others = r.disk.Fork(r.rng.Uint64())
		}
		calm := r.plan.isLifted()
		err := r.tryOpen()
		if err == nil && calm && r.bucket == nil {
			if f := r.setup.checkStored(r.plain); f != nil {
				return f
			}
		}
		if err == nil {
			break
		}
		if !documented(err) || r.plan.isLifted() {
			return found("does not open", "in mode %v after %v: %v", r.setup.opts.RecoveryMode, r.lastEnd, err)
		}
		r.counts.failedOpens++
		r.setup.opts.RecoveryMode, r.others = kv.PointInTime, nil // this was no Close, and perhaps a crash
		if r.gone() {
			r.counts.cutsInOpen++
			r.killed, r.cuts = false, r.disk.Counts().Cuts
			r.mount()
			r.lastEnd += ", then a power cut during recovery"
		}
	}
	r.calm()
	if r.bucket != nil {
		return r.bucket.hold(r)
	}
	return r.check()
}

func (r *round) tryOpen() error {
	s := r.setup
	s.harness.FS = r.session
	if r.bucket != nil {
		r.bucket.use(&s, r.bucket.flight, r.bucket.options.CacheSize)
	}
	s.opts.Clock = r.oracle.clock.time
	if s.panics {
		r.plan.disturb(&s.opts)
	}
	log := lossLog{r: r}
	if s.opts.Logger != nil {
		log.next = s.opts.Logger.Handler()
	}
	s.opts.Logger = slog.New(log)
	*harness.Of(&s.opts) = s.harness
	r.watch.begin(mainGoroutine, "Open")
	defer r.watch.end(mainGoroutine)
	var err error
	r.db, err = kv.Open(storeDir, &s.opts)
	return err
}

// check holds all that the store has against the model.
func (r *round) check() *Finding {
	what := "after " + r.lastEnd
	for _, backward := range []bool{false, true} {
		c, err := readAll(r.db, "", backward)
		if r.gone() {
			return nil
		}
		if err != nil {
			return found("unreadable", "%s: %v", what, err)
		}
		if backward {
			return nil
		}
		v, f := r.oracle.settle(what, c, r.killed)
		if f == nil {
			f = r.checkBlobs(what)
		}
		if f == nil {
			f = r.checkSlots()
		}
		if f == nil {
			f = r.compareRepaired(c)
		}
		if f == nil && r.others != nil {
			f = r.tryModes(c)
		}
		if f != nil {
			return f
		}
		r.counts.settled(v)
		r.killed = false
	}
	return nil
}

package kv

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/job"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A compaction that fails has changed nothing: its outputs are removed and its inputs stay.
// Writes go on, and compactions pause with back-off; only when level 0 is full do writers
// get the cause as an error, where they would have waited for a compaction. Tables whose
// bytes are wrong are left alone until the store is opened again, and compactions go on
// around them; tables that the disk does not give out are left alone for a while. A failure
// that says nothing about the file, such as too many open files, is waited out.

// maxReadFailures is how often in a row compactions may fail to read before the
// disk's errors count as damage.
const maxReadFailures = 3

// pausedCompactions is what d.mu guards about failed compactions.
type pausedCompactions struct {
	paused       bool // until the timer fires
	timer        *time.Timer
	wait         time.Duration
	cause        error // of the last failure, until a compaction succeeds
	readFailures int   // in a row
}

// afterCompaction draws the conclusions from how a compaction ended.
func (d *DB) afterCompaction(c *runningCompaction, err error, manual bool) {
	_, reading := errors.AsType[job.InputError](err)
	reading = reading && !vfs.IsDenied(err)
	switch {
	case err == nil:
		d.mu.Lock()
		p := &d.compactions.pausedCompactions
		p.wait, p.cause, p.readFailures = 0, nil, 0
		p.paused = false // of one that failed beside it: what has worked says that it may work now
		d.mu.Unlock()
		return
	case errors.Is(err, errClosing), errors.Is(err, base.ErrContextEnded), errors.Is(err, ErrReadOnly):
		// whoever asked knows why
		return
	}
	d.counters.FailedCompactions.Add(1) // before anybody hears of it
	victim, ofVictim := errors.AsType[*tablemeta.VictimError](err)
	switch {
	case ofVictim && !vfs.IsDenied(err):
		d.setAside(victim, errors.Is(err, ErrCorruption) || errors.Is(err, fs.ErrNotExist))
	case reading && errors.Is(err, ErrCorruption):
		d.quarantine(c, err)
	case errors.Is(err, fs.ErrNotExist):
		_ = d.fail(0, compacting, d.explainLoss(err)) // what is written to a directory that is gone is lost
	case !manual:
		d.pauseCompactions(c, err, reading)
	}
	d.progress.Broadcast() // writers may wait for this compaction
}

// pauseCompactions keeps compactions from starting for a while.
func (d *DB) pauseCompactions(c *runningCompaction, err error, reading bool) {
	again := d.lacksSpace(err)
	d.mu.Lock()
	if vfs.IsNoSpace(err) {
		d.compactions.GC.Abandon() // the next batch takes less
	}
	if again {
		d.mu.Unlock()
		return
	}
	p := &d.compactions.pausedCompactions
	p.cause = err
	p.readFailures++
	damaged := reading && p.readFailures == maxReadFailures
	if damaged || !reading {
		p.readFailures = 0
	}
	wait := d.opts.backoff.after(p.wait)
	p.wait, p.paused = wait, true
	restart(&p.timer, wait, d.resumeCompactions)
	d.mu.Unlock()
	d.log.Warn("a compaction failed and changed nothing; it is tried again", "wait", wait, "error", err)
	if c.Kind.Rules().CollectsBlobs && vfs.IsNoSpace(err) {
		_ = d.fail(0, compacting, err) // writers are told: they would take the room that is left
	}
	if damaged {
		d.releaseLater(d.quarantine(c, err))
	}
}

// releaseLater lets compactions have tables again that the disk has not given out, after
// the longest wait between two attempts: they may be healthy.
func (d *DB) releaseLater(tables []*version.Table) {
	d.afterLongestWait(func() {
		for _, t := range tables {
			t.Quarantined = false
		}
	})
}

// afterLongestWait makes a change, with d.mu held, after the longest wait between two attempts.
func (d *DB) afterLongestWait(change func()) {
	time.AfterFunc(d.opts.backoff.max, func() { d.reschedule(change) })
}

func (d *DB) resumeCompactions() { d.reschedule(func() { d.compactions.paused = false }) }

// restart starts a timer, or sets one that is there anew.
func restart(t **time.Timer, wait time.Duration, f func()) {
	if *t == nil {
		*t = time.AfterFunc(wait, f)
	} else {
		(*t).Reset(wait)
	}
}

// stop ends pauses and waits for good. The caller holds d.mu.
func (s *compactionState) stop() {
	for _, t := range []*time.Timer{s.timer, s.expiry} {
		if t != nil {
			t.Stop()
		}
	}
}

// quarantine keeps the damaged inputs of a compaction out of later ones: the one
// that the error names, or all if it names none. It returns them.
func (d *DB) quarantine(c *runningCompaction, err error) (tables []*version.Table) {
	var names []string
	d.mu.Lock()
	s := &d.compactions
	s.Quarantined = slices.DeleteFunc(s.Quarantined, func(t *version.Table) bool {
		return !t.Quarantined || !d.current.Has(t.Num)
	})
	tables = c.Tables()
	if t := d.namedIn(tables, err); t != nil {
		tables = []*version.Table{t}
	}
	for _, t := range tables {
		if !t.Quarantined {
			t.Quarantined = true
			s.Quarantined = append(s.Quarantined, t)
		}
		names = append(names, d.tablePath(t.Num))
	}
	d.mu.Unlock()
	d.log.Error("a compaction could not read its input: the files are left as they are", "files", names, "error", err)
	tell(d, "Quarantined", d.opts.Events.Quarantined, err)
	return tables
}

// namedIn returns the table whose file an error names, or nil.
func (d *DB) namedIn(tables []*version.Table, err error) *version.Table {
	name := ""
	if ce, ok := errors.AsType[*CorruptionError](err); ok {
		name = ce.File
	} else if pe, ok := errors.AsType[*fs.PathError](err); ok {
		name = pe.Path
	}
	i := slices.IndexFunc(tables, func(t *version.Table) bool { return d.tablePath(t.Num) == name })
	if i < 0 {
		return nil
	}
	return tables[i]
}

// leaveAlone keeps blob GC from a blob file that cannot be read.
func (d *DB) leaveAlone(num uint64, cause error) {
	d.mu.Lock()
	known := d.compactions.GC.Exclude(num)
	d.mu.Unlock()
	if known {
		return
	}
	d.log.Error("a blob file cannot be read: it is left as it is", "file", d.blobPath(num), "error", cause)
	tell(d, "Quarantined", d.opts.Events.Quarantined, cause)
}

// setAside keeps blob GC from a blob file that could not be read: for good if it is damaged or gone, or else for a
// while.
func (d *DB) setAside(e *tablemeta.VictimError, forGood bool) {
	d.leaveAlone(e.Num, e.Cause)
	d.mu.Lock()
	d.compactions.DropStuck(d.current)
	d.mu.Unlock()
	if !forGood {
		d.afterLongestWait(func() { delete(d.compactions.GC.Excluded, e.Num) })
	}
}

package kv

import (
	"errors"
	"io/fs"
	"time"

	"github.com/siftkv/siftkv/internal/manifest"
)

// A compaction that fails has changed nothing: its outputs are removed and its
// inputs stay. So writes go on, and compactions pause with back-off; only when level
// 0 is full do writers get the cause as an error, where they would have waited for
// a compaction. Damage is not waited out: tables that cannot be read are left alone
// until the store is opened again, and compactions go on around them. Reads of what
// is damaged fail, as ever; all else is read.

// An inputError is a failure to read what is compacted.
type inputError struct{ error }

func (e inputError) Unwrap() error { return e.error }

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
func (d *DB) afterCompaction(c *compaction, err error, manual bool) {
	var input inputError
	reading := errors.As(err, &input)
	switch {
	case err == nil:
		d.mu.Lock()
		p := &d.compactions.pausedCompactions
		p.wait, p.cause, p.readFailures = 0, nil, 0
		d.mu.Unlock()
		return
	case errors.Is(err, errClosing), errors.Is(err, errGivenUp), errors.Is(err, ErrReadOnly): // whoever asked knows why
		return
	case reading && errors.Is(err, ErrCorruption):
		d.quarantine(c, err)
	case errors.Is(err, fs.ErrNotExist):
		_ = d.fail(0, compacting, err) // what is written to a directory that is gone is lost
	case !manual:
		d.pauseCompactions(c, err, reading)
	}
	d.counters.failedCompactions.Add(1)
	d.progress.Broadcast() // writers may wait for this compaction
}

// pauseCompactions keeps compactions from starting for a while.
func (d *DB) pauseCompactions(c *compaction, err error, reading bool) {
	d.mu.Lock()
	p := &d.compactions.pausedCompactions
	p.cause = err
	p.readFailures++
	if !reading {
		p.readFailures = 0
	}
	givenUp := p.readFailures == maxReadFailures
	if givenUp {
		p.readFailures = 0
	}
	p.wait = d.opts.backoff.after(p.wait)
	wait := p.wait
	p.paused = true
	if p.timer == nil {
		p.timer = time.AfterFunc(wait, d.resumeCompactions)
	} else {
		p.timer.Reset(wait)
	}
	d.mu.Unlock()
	d.log.Warn("a compaction failed and changed nothing; it is tried again", "wait", wait, "error", err)
	if givenUp {
		d.quarantine(c, err)
	}
}

func (d *DB) resumeCompactions() {
	d.mu.Lock()
	d.compactions.paused = false
	d.scheduleCompactionsLocked()
	d.mu.Unlock()
}

// stop ends the pause for good. The caller holds d.mu.
func (p *pausedCompactions) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

// quarantine keeps the damaged inputs of a compaction out of later ones: the one
// that the error names, or all if it names none.
func (d *DB) quarantine(c *compaction, err error) {
	var names []string
	d.mu.Lock()
	tables := c.tables()
	if t := d.namedIn(tables, err); t != nil {
		tables = []*table{t}
	}
	for _, t := range tables {
		t.quarantined = true
		names = append(names, d.path(manifest.FileTable, t.Num))
	}
	d.mu.Unlock()
	d.log.Error("a compaction met damage: the files are left as they are until the store is opened again",
		"files", names, "error", err)
	if d.opts.Events.Damaged != nil {
		d.opts.Events.Damaged(err)
	}
}

// namedIn returns the table whose file an error names, or nil.
func (d *DB) namedIn(tables []*table, err error) *table {
	name := ""
	if ce, ok := errors.AsType[*CorruptionError](err); ok {
		name = ce.File
	} else if pe, ok := errors.AsType[*fs.PathError](err); ok {
		name = pe.Path
	}
	for _, t := range tables {
		if d.path(manifest.FileTable, t.Num) == name {
			return t
		}
	}
	return nil
}

func anyQuarantined(tables []*table) bool {
	for _, t := range tables {
		if t.quarantined {
			return true
		}
	}
	return false
}

// pickWithinLevel0 merges the youngest tables of level 0 into one table of level
// 0, when a table that is left alone keeps them from going down: so that their
// number stays small. Each merge takes older tables as long as they are not much
// larger than what is younger, which bounds what is rewritten by the logarithm of
// the number of flushes. The caller holds d.mu.
func (d *DB) pickWithinLevel0(v *version) *compaction {
	var run []*table
	bytes := int64(0)
	for _, t := range v.levels[0].tables { // newest first
		if t.quarantined || t.compacting || len(run) > 0 && t.Size > 2*bytes {
			break
		}
		run = append(run, t)
		bytes += t.Size
	}
	if len(run) < 2 {
		return nil
	}
	c := &compaction{reason: "level 0 has many files, above a damaged one", level: 0, output: 0}
	c.inputs[0] = run
	if d.conflicts(c) {
		return nil
	}
	return c
}

package kv

import (
	"errors"
	"io/fs"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A compaction that fails has changed nothing: its outputs are removed and its
// inputs stay. So writes go on, and compactions pause with back-off; only when level
// 0 is full do writers get the cause as an error, where they would have waited for
// a compaction. Damage is not waited out: tables whose bytes are wrong are left alone
// until the store is opened again, and compactions go on around them. Tables that the disk
// does not give out are left alone for a while. What says nothing about the file, such as
// a process that has too many files open, is waited out, however long it takes. Reads of
// what is damaged fail, as ever; all else is read.

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
	reading := errors.As(err, &input) && !vfs.IsDenied(err)
	switch {
	case err == nil:
		d.mu.Lock()
		p := &d.compactions.pausedCompactions
		p.wait, p.cause, p.readFailures = 0, nil, 0
		p.paused = false // of one that failed beside it: what has worked says that it may work now
		d.mu.Unlock()
		return
	case errors.Is(err, errClosing), errors.Is(err, base.ErrContextEnded), errors.Is(err, ErrReadOnly): // whoever asked knows why
		return
	}
	d.counters.failedCompactions.Add(1) // before anybody hears of it
	switch {
	case reading && errors.Is(err, ErrCorruption):
		d.quarantine(c, err)
	case errors.Is(err, fs.ErrNotExist):
		_ = d.fail(0, compacting, err) // what is written to a directory that is gone is lost
	case !manual:
		d.pauseCompactions(c, err, reading)
	}
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
		d.releaseLater(d.quarantine(c, err))
	}
}

// releaseLater lets compactions have tables again that the disk has not given out, after
// the longest wait between two attempts: they may be healthy.
func (d *DB) releaseLater(tables []*version.Table) {
	time.AfterFunc(d.opts.backoff.most, func() {
		d.mu.Lock()
		for _, t := range tables {
			t.Quarantined = false
		}
		d.scheduleCompactionsLocked()
		d.mu.Unlock()
		d.progress.Broadcast()
	})
}

func (d *DB) resumeCompactions() {
	d.mu.Lock()
	d.compactions.paused = false
	d.scheduleCompactionsLocked()
	d.mu.Unlock()
	d.progress.Broadcast() // a writer may wait for what does not begin
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
func (d *DB) quarantine(c *compaction, err error) (tables []*version.Table) {
	var names []string
	d.mu.Lock()
	tables = c.tables()
	if t := d.namedIn(tables, err); t != nil {
		tables = []*version.Table{t}
	}
	for _, t := range tables {
		t.Quarantined = true
		names = append(names, d.path(manifest.FileTable, t.Num))
	}
	d.mu.Unlock()
	d.log.Error("a compaction could not read its input: the files are left as they are", "files", names, "error", err)
	if d.opts.Events.Quarantined != nil {
		d.opts.Events.Quarantined(err)
	}
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
	for _, t := range tables {
		if d.path(manifest.FileTable, t.Num) == name {
			return t
		}
	}
	return nil
}

func anyQuarantined(tables []*version.Table) bool {
	for _, t := range tables {
		if t.Quarantined {
			return true
		}
	}
	return false
}

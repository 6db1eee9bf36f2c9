package kv

import (
	"errors"
	"slices"
	"time"
)

// What the pipeline does with its logs: the one that it writes, and those that have ended and
// were not synced, which a commit that has to be durable syncs first.

// writeLog takes the log as far as level asks.
func (p *commitPipeline) writeLog(d *DB, level durability) error {
	switch level {
	case durableSync:
		// A log that ended comes first: what is durable must be a prefix.
		p.dropFlushedLogs(d)
		for len(p.unsynced) > 0 {
			if err := p.unsynced[0].w.Sync(); err != nil {
				return err
			}
			if err := p.unsynced[0].w.CloseFile(); err != nil {
				return err
			}
			p.unsynced = p.unsynced[1:]
		}
		d.counters.walSyncs.Add(1)
		return p.log.w.Sync()
	case durableOS:
		return p.log.w.Flush()
	}
	if p.log.w.Buffered() >= asyncBuffer {
		return p.log.w.Flush()
	}
	if !p.armed {
		p.armed = true
		if p.soon == nil {
			p.soon = time.AfterFunc(asyncDelay, d.flushLog)
		} else {
			p.soon.Reset(asyncDelay)
		}
	}
	return nil
}

// fail makes the store read-only because a log could not be written or synced. All logs
// are broken with it: a later one that became durable would leave a hole, and what is
// buffered holds the record of the commit that failed. The caller leads the pipeline.
func (p *commitPipeline) fail(d *DB, what string, err error) error {
	for _, l := range slices.Concat(p.unsynced, []*logFile{p.log}) {
		l.w.Break(err)
	}
	return d.fail(brokenLog, what, err)
}

// flushLog hands what Async writes left to the operating system. If that fails, the next
// writer is told.
func (d *DB) flushLog() {
	p := &d.commits
	_ = p.exclusive(d, func() error {
		p.armed = false
		if err := p.log.w.Flush(); err != nil {
			return p.fail(d, writingLog, err)
		}
		return nil
	})
}

// sync makes all writes durable that came before. If it cannot, the store has failed.
func (p *commitPipeline) sync(d *DB) error {
	if d.opts.ReadOnly {
		return nil
	}
	return p.exclusive(d, func() error {
		if err := p.writeLog(d, durableSync); err != nil {
			return p.fail(d, writingLog, err)
		}
		return nil
	})
}

// close waits for the writers that came before, makes the log durable, with the mark that
// ends it, and gives it back. Later requests return ErrClosed. If the log cannot be made
// durable, the store has failed.
func (p *commitPipeline) close(d *DB) error {
	if d.opts.ReadOnly {
		return nil
	}
	return p.exclusive(d, func() error {
		p.closed = true
		if d.failedError() == nil {
			err := p.log.w.End()
			if err == nil {
				err = p.writeLog(d, durableSync)
			}
			if err != nil {
				_ = p.fail(d, writingLog, err)
			}
		}
		return p.abandon()
	})
}

// abandon closes the files of the pipeline as they are.
func (p *commitPipeline) abandon() error {
	if p.soon != nil {
		p.soon.Stop()
	}
	var errs []error
	for _, l := range append(p.unsynced, p.log) {
		if l != nil {
			errs = append(errs, l.w.CloseFile())
		}
	}
	p.unsynced, p.log = nil, nil
	return errors.Join(errs...)
}

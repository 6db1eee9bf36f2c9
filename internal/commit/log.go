package commit

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/wal"
)

const writingLog = "writing the log"

// LastSeq returns the last sequence number that was given out. It is the leader's.
func (p *Pipeline) LastSeq() base.SeqNum { return p.seq }

// NextSeq gives out a sequence number. It is the leader's.
func (p *Pipeline) NextSeq() base.SeqNum {
	p.seq++
	return p.seq
}

// Log returns the log that takes writes. It is the leader's.
func (p *Pipeline) Log() *wal.Writer { return p.log }

// SwitchLog lets writers go on in another log. The one before has ended; a commit that has
// to be durable syncs it first. It is the leader's.
func (p *Pipeline) SwitchLog(next *wal.Writer) {
	p.unsynced = append(p.unsynced, p.log)
	p.log = next
	p.closeFlushed()
}

// ReplaceLogs lets writers go on in another log, and closes those before, whose writes
// are in tables. It is the leader's.
func (p *Pipeline) ReplaceLogs(next *wal.Writer) {
	for _, l := range p.logs() {
		_ = l.CloseFile() // what it has is in tables
	}
	p.unsynced, p.log = nil, next
}

// logs returns all logs, oldest first.
func (p *Pipeline) logs() []*wal.Writer {
	if p.log == nil {
		return p.unsynced
	}
	return append(slices.Clip(p.unsynced), p.log)
}

// Fail tells the store that a log could not be written or synced, and returns the error
// that writers get. All logs are broken with it: a later one that became durable would
// leave a hole, and what is buffered holds the record of the commit that failed. It is the
// leader's.
func (p *Pipeline) Fail(what string, err error) error {
	for _, l := range p.logs() {
		l.Break(err)
	}
	return p.store.Fail(what, false, err)
}

// closeFlushed closes the ended logs whose writes are in tables: they need no sync any
// more.
func (p *Pipeline) closeFlushed() {
	if len(p.unsynced) == 0 {
		return
	}
	flushedTo := p.store.FlushedTo()
	for len(p.unsynced) > 0 && p.unsynced[0].ID() < flushedTo {
		if err := p.unsynced[0].CloseFile(); err != nil {
			p.store.Logger.Warn("a log could not be closed", "log", p.unsynced[0].ID(), "error", err)
		}
		p.unsynced = p.unsynced[1:]
	}
}

// writeLog takes the log as far as level asks.
func (p *Pipeline) writeLog(level Level) error {
	switch level {
	case Synced:
		// A log that ended comes first: what is durable must be a prefix.
		p.closeFlushed()
		for len(p.unsynced) > 0 {
			if err := p.unsynced[0].Sync(); err != nil {
				return err
			}
			if err := p.unsynced[0].CloseFile(); err != nil {
				return err
			}
			p.unsynced = p.unsynced[1:]
		}
		p.Syncs.Add(1)
		return p.log.Sync()
	case Written:
		return p.log.Flush()
	}
	if p.log.Buffered() >= bufferedBytes {
		return p.log.Flush()
	}
	if !p.armed {
		p.armed = true
		if p.soon == nil {
			p.soon = time.AfterFunc(bufferedDelay, p.flushLog)
		} else {
			p.soon.Reset(bufferedDelay)
		}
	}
	return nil
}

// withLog runs f between two groups, and tells the store if it fails.
func (p *Pipeline) withLog(f func() error) error {
	return p.Exclusive(context.Background(), func() error {
		if err := f(); err != nil {
			return p.Fail(writingLog, err)
		}
		return nil
	})
}

// flushLog hands what Buffered commits left to the operating system. If that fails, the
// next writer is told.
func (p *Pipeline) flushLog() {
	_ = p.withLog(func() error {
		p.armed = false
		return p.log.Flush()
	})
}

// Sync makes all writes durable that came before. If it cannot, the store has failed.
// A pipeline that was not started has none.
func (p *Pipeline) Sync() error {
	return p.withLog(func() error {
		if p.log == nil {
			return nil
		}
		return p.writeLog(Synced)
	})
}

// Close waits for the writers that came before, and gives the logs back. Later requests
// return base.ErrClosed. Unless the store has failed by then, it makes the log durable,
// with the mark that ends it; if it cannot, the store has failed.
func (p *Pipeline) Close(failed func() bool) error {
	return p.Exclusive(context.Background(), func() error {
		p.closed = true
		if p.log != nil && !failed() {
			err := p.log.End()
			if err == nil {
				err = p.writeLog(Synced)
			}
			if err != nil {
				_ = p.Fail(writingLog, err)
			}
		}
		return p.Abandon()
	})
}

// Abandon closes the logs as they are. It is the leader's, or for a pipeline that nobody
// uses.
func (p *Pipeline) Abandon() error {
	if p.soon != nil {
		p.soon.Stop()
	}
	var errs []error
	for _, l := range p.logs() {
		errs = append(errs, l.CloseFile())
	}
	p.unsynced, p.log = nil, nil
	return errors.Join(errs...)
}

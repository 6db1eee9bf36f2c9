package commit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/vfs"
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

// logs are those that the pipeline owns: the one that takes writes, and those that ended before it and are not synced.
//
// A failure breaks all of them at once. A later one that became durable would leave a hole, and what is buffered holds
// the record of the commit that failed. Nothing is published from that moment on, until the logs are replaced: so a
// batch that had to be durable first and was not visible then is never visible.
type logs struct {
	mu      sync.Mutex
	current *wal.Writer   // the leader's to write to, and to change
	ended   []*wal.Writer // oldest first
	broken  error
}

// all returns all logs, oldest first. The caller holds l.mu, or has the only access to them.
func (l *logs) all() []*wal.Writer {
	if l.current == nil {
		return l.ended
	}
	return append(slices.Clip(l.ended), l.current)
}

// oldest returns the oldest log, and whether it has ended.
func (l *logs) oldest() (log *wal.Writer, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ended) > 0 {
		return l.ended[0], true
	}
	return l.current, false
}

// closeOldest closes the oldest log, which has ended.
func (l *logs) closeOldest() error {
	l.mu.Lock()
	log := l.ended[0]
	l.ended = slices.Delete(l.ended, 0, 1)
	l.mu.Unlock()
	return log.CloseFile()
}

// Log returns the log that takes writes. It is the leader's.
func (p *Pipeline) Log() *wal.Writer { return p.logs.current }

// SwitchLog lets writers go on in another log. The one before has ended; a commit that has
// to be durable syncs it first. It is the leader's.
func (p *Pipeline) SwitchLog(next *wal.Writer) {
	l := &p.logs
	l.mu.Lock()
	l.ended = append(l.ended, l.current)
	l.current = next
	if l.broken != nil {
		next.Break(l.broken)
	}
	l.mu.Unlock()
	p.mu.Lock()
	running := p.syncs.running // if not, none begins before the leader has passed leadership on
	p.mu.Unlock()
	if !running {
		p.closeFlushed()
	}
}

// ReplaceLogs lets writers go on in another log, and closes those before. Their writes
// must be in tables. It is called within Exclusive.
func (p *Pipeline) ReplaceLogs(next *wal.Writer) {
	l := &p.logs
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, log := range l.all() {
		_ = log.CloseFile() // what it has is in tables
	}
	l.ended, l.current, l.broken = nil, next, nil
}

// Fail breaks all logs, tells the store that one could not be written or synced, and returns
// the error that writers get.
func (p *Pipeline) Fail(what string, err error) error {
	l := &p.logs
	l.mu.Lock()
	if l.broken == nil {
		l.broken = err
	}
	for _, log := range l.all() {
		log.Break(err)
	}
	l.mu.Unlock()
	return p.store.Fail(what, false, err)
}

// publish makes everything up to seq visible, all of which is applied. If the logs are
// broken, it returns why, unless everything is visible already.
func (p *Pipeline) publish(seq base.SeqNum) error {
	l, visible := &p.logs, p.store.Visible
	l.mu.Lock()
	defer l.mu.Unlock()
	if uint64(seq) <= visible.Load() {
		return nil
	}
	if l.broken == nil {
		visible.Store(uint64(seq))
		p.Watch.Notify()
	}
	return l.broken
}

// closeFlushed closes the ended logs that have all writes in tables: they need no sync
// any more. The caller syncs, or leads while no sync runs.
func (p *Pipeline) closeFlushed() {
	l := &p.logs
	log, ended := l.oldest()
	if !ended {
		return
	}
	for flushedTo := p.store.FlushedTo(); ended && log.ID() < flushedTo; log, ended = l.oldest() {
		if err := l.closeOldest(); err != nil {
			p.store.Logger.Warn("a log could not be closed", "log", log.ID(), "error", err)
		}
	}
}

// syncLogs makes durable what was flushed to the log with this number, and to those before
// it. They come first: what is durable must be a prefix. One sync runs at a time.
func (p *Pipeline) syncLogs(upTo uint64) error {
	p.closeFlushed()
	for counted := false; ; {
		log, ended := p.logs.oldest()
		if log.ID() > upTo {
			return nil
		}
		if !counted && !log.Synced() {
			counted = true
			defer p.beginSync()()
		}
		if err := log.SyncFile(); err != nil || !ended {
			return err
		}
		if err := p.logs.closeOldest(); err != nil {
			return err
		}
	}
}

// MarkSynced is SyncVisible, and hands a mark of what is durable to the operating system, for readers in other
// processes: a log says so otherwise with the next record.
func (p *Pipeline) MarkSynced(ctx context.Context) error {
	if err := p.SyncVisible(ctx); err != nil {
		return err
	}
	return p.Exclusive(ctx, func() error {
		if err := p.logs.current.Mark(); err != nil {
			return p.Fail(writingLog, err)
		}
		return nil
	})
}

// SyncEnded makes durable the logs that have ended, up to the one with this number, which are in no table yet. It needs
// no turn, and a sync of a group may run at the same time. If it cannot, the store has failed. A log that another
// goroutine closes meanwhile is durable, or in tables.
func (p *Pipeline) SyncEnded(upTo uint64) error {
	p.logs.mu.Lock()
	ended := slices.Clone(p.logs.ended)
	p.logs.mu.Unlock()
	for _, log := range ended {
		if log.ID() > upTo {
			break
		}
		if log.ID() < p.store.FlushedTo() {
			continue
		}
		if err := log.SyncFile(); err != nil && !errors.Is(err, base.ErrClosed) {
			return p.Fail(writingLog, err)
		}
	}
	return nil
}

// Whole returns the file of a log, which is open as f, with what it may lack at its end. The log has ended, or the
// store has failed and the caller resumes it: nothing is written to the log meanwhile.
func (p *Pipeline) Whole(log uint64, f vfs.ReadFile) vfs.ReadFile {
	p.logs.mu.Lock()
	defer p.logs.mu.Unlock()
	for _, l := range p.logs.all() {
		if l.ID() == log {
			return l.Whole(f)
		}
	}
	return f
}

// beginSync counts a sync. The caller calls end when it has ended.
func (p *Pipeline) beginSync() (end func()) {
	p.Syncs.Add(1)
	took := p.store.SyncTook
	if took == nil {
		return func() {}
	}
	began := time.Now()
	return func() { took(time.Since(began)) }
}

// writeLog appends the batches of a group to the log, and flushes it as level requires. It does not sync.
func (p *Pipeline) writeLog(group []*request, level Level) error {
	log := p.logs.current
	for _, r := range group {
		if err := log.Append(r.batch.Record()); err != nil {
			return err
		}
	}
	if level != Buffered || log.Buffered() >= bufferedBytes {
		return log.Flush()
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

// withLog runs f within Exclusive, and tells the store if it fails.
func (p *Pipeline) withLog(f func() error) error {
	return p.Exclusive(context.Background(), func() error {
		if err := f(); err != nil {
			return p.Fail(writingLog, err)
		}
		return nil
	})
}

// flushLog hands what Buffered commits left to the operating system. If that fails, the
// next writer is told. A log that has replaced theirs since, and has nothing yet, stays so.
func (p *Pipeline) flushLog() {
	_ = p.withLog(func() error {
		p.armed = false
		return p.flushRecords()
	})
}

// flushRecords hands what is buffered to the operating system, unless it is only the header of an
// empty log. It is the leader's.
func (p *Pipeline) flushRecords() error {
	if p.logs.current.Empty() {
		return nil
	}
	return p.logs.current.Flush()
}

// Sync makes all writes durable that came before. If it cannot, the store has failed.
// A pipeline that was not started has none.
func (p *Pipeline) Sync() error {
	return p.withLog(func() error {
		if p.logs.current == nil {
			return nil
		}
		return p.syncAll()
	})
}

// syncAll makes everything durable. It is called within Exclusive.
func (p *Pipeline) syncAll() error {
	log := p.logs.current
	if err := log.Flush(); err != nil {
		return err
	}
	return p.syncLogs(log.ID())
}

// Close waits for the writers that came before, and gives the logs back. Later requests
// return base.ErrClosed. Unless the store has failed by then, it makes the log durable,
// with the mark that ends it; if it cannot, the store has failed.
func (p *Pipeline) Close(failed func() bool) error {
	return p.Exclusive(context.Background(), func() error {
		p.closed = true
		if log := p.logs.current; log != nil && !failed() {
			err := log.End()
			if err == nil {
				err = p.syncAll()
			}
			if err != nil {
				_ = p.Fail(writingLog, err)
			}
		}
		return p.abandon()
	})
}

// Abandon is Close that leaves the logs as they are.
func (p *Pipeline) Abandon() error { return p.Exclusive(context.Background(), p.abandon) }

// abandon closes the logs as they are. It is called within Exclusive: flushLog may wait for its turn already.
func (p *Pipeline) abandon() error {
	p.closed = true
	if p.soon != nil {
		p.soon.Stop()
	}
	var errs []error
	for _, log := range p.logs.all() {
		errs = append(errs, log.CloseFile())
	}
	p.logs.ended, p.logs.current = nil, nil
	return errors.Join(errs...)
}

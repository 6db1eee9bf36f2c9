package kv

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/job"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Compact writes the memtables to disk and merges everything between lo and hi, both included (nil: unbounded), into
// the last level, without what was deleted or overwritten. Then it copies separated values out of blob files that have
// garbage, and out of small ones, one batch of files after the other. It needs as much free space as what it merges,
// and as a batch copies. It returns when that is done; reads and writes go on meanwhile, and so do compactions in the
// background, where they have nothing to do with what is merged: they keep level 0 short. After an error the merge, or
// the batch, that it had begun has changed nothing.
//
// When ctx ends, Compact stops the merge or the batch that runs, removes what that has written,
// and returns an error that matches ctx.Err(). The store holds what it held.
func (d *DB) Compact(ctx context.Context, lo, hi []byte) error {
	if lo != nil && hi != nil && bytes.Compare(lo, hi) > 0 {
		return d.writable()
	}
	if err := d.Flush(ctx); err != nil {
		return err
	}
	finished, err := finishedTables(d, lo, endAfter(hi))
	if err != nil {
		return err
	}
	_, err = d.runManual(ctx, func(in *compaction.Input) *compaction.Job {
		return in.MergeRange(lo, endAfter(hi), finished)
	})
	if err != nil {
		return err
	}
	return d.collectRange(ctx, lo, endAfter(hi))
}

// finishedTables returns the tables of the last level with keys of [lo, end) that rewriting would not change.
func finishedTables(d *DB, lo, end []byte) (map[*version.Table]bool, error) {
	s := d.acquire(0)
	if s == nil {
		return nil, d.unreadable()
	}
	defer s.release(0)
	return d.jobEnv(s.operands).Finished(s.version, lo, end)
}

// runManual runs the job that pick returns in its caller's goroutine, and returns it. Pick is called with d.mu held,
// and perhaps several times; if it returns nil, so does runManual.
func (d *DB) runManual(ctx context.Context, pick func(in *compaction.Input) *compaction.Job) (c *job.Compaction,
	err error) {
	if c, err = d.beginManual(ctx, pick); c != nil {
		err = d.compact(ctx, c)
	}
	d.reschedule(func() {
		if c != nil {
			d.end(c)
		}
	})
	switch {
	case errors.Is(err, errClosing):
		err = ErrClosed
	case errors.Is(err, base.ErrContextEnded):
		err = base.ContextError(ctx, "a compaction was broken off")
	}
	return c, err
}

// beginManual begins the job that pick returns, unless that is nil. It waits until no running one is in its way and
// there is a thread, and keeps others from beginning there. If ctx ends meanwhile, the error is base.ErrContextEnded.
func (d *DB) beginManual(ctx context.Context, pick func(in *compaction.Input) *compaction.Job) (
	*job.Compaction, error) {
	defer broadcastAt(ctx, &d.progress)()
	thread := d.memory.share.NewRequest()
	defer thread.Cancel()
	d.clock.ask()
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		switch {
		case d.failure != nil:
			return nil, d.failure
		case d.closing:
			return nil, ErrClosed
		case ctx.Err() != nil:
			return nil, base.ErrContextEnded
		}
		in := d.compactionInput(d.current)
		j := pick(in)
		if j == nil {
			return nil, nil
		}
		busy := in.Busy(j)
		if !busy && thread.Acquire() {
			return d.begin(j), nil
		}
		s, wanted := &d.compactions, version.SpanOf(j.Tables())
		s.Rest.Stop()
		if !busy {
			d.progress.Wait() // for a thread
			continue
		}
		s.Wanted = append(s.Wanted, &wanted)
		d.progress.Wait()
		s.Wanted = slices.DeleteFunc(s.Wanted, func(w *version.Span) bool { return w == &wanted })
	}
}

// endAfter returns the exclusive end of a range whose last key is hi; nil has no bound.
func endAfter(hi []byte) []byte {
	if hi == nil {
		return nil
	}
	return append(slices.Clip(hi), 0)
}

// collectRange collects the blob files that have more than a little garbage, and whose values all are of tables with
// keys of [lo, end), and joins the small ones. Files that cannot be read are left alone, but a failure that says
// nothing about them is returned.
//
// It goes batch by batch: a batch takes little space before its files are gone, and between two of them the collection
// that keeps blob files to their limit has its turn. Files that come meanwhile are left to that.
func (d *DB) collectRange(ctx context.Context, lo, end []byte) error {
	joining, next := false, d.nextFile.Load()
	for {
		c, err := d.runManual(ctx, func(in *compaction.Input) *compaction.Job {
			if joining {
				return in.JoinRange(lo, end, next)
			}
			return in.CollectRange(lo, end, next)
		})
		if _, ofCandidate := errors.AsType[*tablemeta.CandidateError](err); ofCandidate && !vfs.IsDenied(err) {
			if c.Kind == compaction.JoinBlobs { // each of many that are damaged would begin it again
				return nil
			}
			continue
		}
		switch {
		case err != nil:
			return err
		case c == nil && joining:
			return nil
		case c == nil:
			joining, next = true, d.nextFile.Load()
			continue
		}
		// What the batch has emptied is gone before the next takes space.
		if d.cleaner.WaitContext(ctx) != nil {
			return base.ContextError(ctx, "a compaction was broken off")
		}
	}
}

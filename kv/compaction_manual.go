package kv

import (
	"bytes"
	"context"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/filterbudget"
	"github.com/siftkv/siftkv/internal/version"
)

// Compact writes the memtables to disk and merges everything between lo and hi,
// both included (nil: unbounded), into the last level, without what was deleted
// or overwritten. Then it copies separated values out of blob files that have garbage, and out of small ones, one
// batch of files after the other. It needs as much free space as what it merges, and as a batch copies. It returns when
// that is done; reads and writes go on meanwhile, and so do compactions in the background,
// where they have nothing to do with what is merged: they keep level 0 short. After an
// error the merge, or the batch, that it had begun has changed nothing.
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
	finished, err := d.finishedTables(lo, hi)
	if err != nil {
		return err
	}
	c, err := d.beginManual(ctx, func() *compaction.Job {
		return d.compactionInput(d.current).MergeRange(lo, endAfter(hi), finished)
	})
	if err := d.runManual(ctx, c, err); err != nil {
		return err
	}
	return d.collectRange(ctx, lo, endAfter(hi))
}

// beginManual begins the compaction that pick returns, with d.mu held and perhaps several times, unless that is nil. It
// waits until no running one is in its way and there is a thread, and keeps others from beginning there. If ctx ends
// meanwhile, the error is base.ErrContextEnded.
func (d *DB) beginManual(ctx context.Context, pick func() *compaction.Job) (*runningCompaction, error) {
	defer d.broadcastAt(ctx)()
	thread := d.share.NewRequest()
	defer thread.Cancel()
	d.askClock()
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
		j := pick()
		if j == nil {
			return nil, nil
		}
		busy := d.compactionInput(d.current).Busy(j)
		if !busy && thread.Acquire() {
			return d.begin(j), nil
		}
		if !busy {
			d.progress.Wait() // for a thread
			continue
		}
		s, wanted := &d.compactions, version.SpanOf(j.Tables())
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

// finishedTables returns the tables of the last level with keys of [lo, hi] that rewriting would not change. They have
// the filters that new files get. They have no tombstones, operands, values that may have expired, or versions of a key
// under newer ones. It opens those of which the manifest does not say that they have something to lose.
func (d *DB) finishedTables(lo, hi []byte) (map[*version.Table]bool, error) {
	s := d.acquire(0)
	if s == nil {
		return nil, d.unreadable()
	}
	defer d.release(s, 0)
	want := d.opts.filterPlan().For(filterbudget.Tables{Version: s.version, To: version.RunID{Level: lastLevel}})
	finished := map[*version.Table]bool{}
	for _, t := range s.version.Levels[lastLevel].Overlapping(lo, endAfter(hi)) {
		merged := t.Deletes == 0 && t.RangeDeletes == 0 && t.Expiring == 0 && t.Overwritten == 0 &&
			(t.Merges == 0 || d.operands.merger == nil)
		if !merged {
			continue
		}
		r, err := t.Open(&d.tables)
		if err != nil {
			return nil, err
		}
		finished[t] = !d.filtersDiffer(r.Properties(), want)
	}
	return finished, nil
}

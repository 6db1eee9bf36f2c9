package kv

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/job"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/wal"
)

// Flush writes all writes that came before to sorted files. It returns when they are there.
//
// When ctx ends, Flush returns an error that matches ctx.Err(). A flush that has begun goes on.
func (d *DB) Flush(ctx context.Context) error {
	if err := d.writable(); err != nil {
		return err
	}
	var mem *memTable
	err := d.commits.Exclusive(ctx, func() (err error) {
		mem, err = endMemtable(ctx, d)
		return err
	})
	if err != nil {
		return err
	}
	return d.waitFlushed(ctx, mem)
}

// endMemtable makes the active memtable immutable, unless it is empty. The caller leads the pipeline.
func endMemtable(ctx context.Context, d *DB) (mem *memTable, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	mem = d.mem
	for !mem.Empty() {
		switch {
		case d.failure != nil:
			return nil, d.failure
		case ctx.Err() != nil:
			return nil, base.ContextError(ctx, "waited for a flush")
		case len(d.imms)+1 < d.opts.MaxMemtables:
			return mem, d.rotateTo(0, nil)
		case d.closing:
			return nil, ErrClosed // no flush makes room any more
		}
		d.stall(ctx, "memtables wait to be flushed")
	}
	return mem, nil
}

// waitFlushed returns when no memtable up to mem is waiting to be flushed.
func (d *DB) waitFlushed(ctx context.Context, mem *memTable) error {
	defer broadcastAt(ctx, &d.progress)()
	d.mu.Lock()
	defer d.mu.Unlock()
	waits := func() bool { return len(d.imms) > 0 && d.imms[0].Log <= mem.Log }
	for d.failure == nil && !d.closing && ctx.Err() == nil && waits() {
		d.scheduleFlush()
		d.progress.Wait()
	}
	switch {
	case d.failure != nil:
		return d.failure
	case !waits():
		return nil
	case d.closing:
		return ErrClosed
	}
	return base.ContextError(ctx, "waited for a flush")
}

// scheduleFlush starts the flush goroutine if there is work and none runs. The caller holds d.mu.
func (d *DB) scheduleFlush() {
	if d.flushing || d.closing || d.failure != nil || len(d.imms) == 0 {
		return
	}
	d.flushing = true
	d.compactions.Rest.Flushing(time.Now())
	go d.flushAll()
}

// flushAll flushes until nothing is left to flush.
func (d *DB) flushAll() {
	for {
		d.mu.Lock()
		d.compactions.Rest.Busy(time.Now())
		if len(d.imms) == 0 || d.closing || d.failure != nil {
			d.flushing = false
			d.mu.Unlock()
			d.progress.Broadcast()
			d.scheduleCompactions()
			return
		}
		mems := flushable(d.imms, d.seq())
		if len(mems) == 0 {
			d.mu.Unlock()
			d.commits.AwaitSync()
			continue
		}
		snapshots := d.snapshots.seqs()
		d.mu.Unlock()
		err := d.flush(flushJob{mems: mems, snapshots: snapshots, stoppable: true, limit: base.MaxSeqNum})
		if err != nil && !errors.Is(err, errClosing) && !d.lacksSpace(err) {
			_ = d.fail(0, "a flush", err) // callers that wait for the flush get it
		}
		if err == nil {
			d.afterWork()
		}
		d.progress.Broadcast()
		d.scheduleCompactions()
	}
}

// flushable returns those of full memtables, oldest first, whose writes are all visible. The others' may never become
// visible, so no table has them. A snapshot that is taken before they are visible keeps the versions that are older.
func flushable(imms []*memTable, visible base.SeqNum) []*memTable {
	n := slices.IndexFunc(imms, func(m *memTable) bool { return base.SeqNum(m.LastSeq.Load()) > visible })
	if n < 0 {
		n = len(imms)
	}
	return slices.Clip(imms[:n])
}

// A flushJob says what to flush.
type flushJob struct {
	mems      []*memTable // oldest first
	snapshots []base.SeqNum
	stoppable bool        // return errClosing if the store closes meanwhile
	next      *wal.Writer // not nil: mems is all memtables, and a new one goes on with this log
	limit     base.SeqNum // what is newer is left out
}

// flush writes memtables to one run of level 0 and installs it.
func (d *DB) flush(f flushJob) error {
	start := time.Now()
	mems := f.mems
	d.mu.Lock()
	v := d.current
	v.Ref()
	d.mu.Unlock()
	defer d.cleaner.Unref(v)
	env, files := d.jobEnv(d.operands), d.values.Flush(mems)
	parts, err := keepLogs(d, f, files)
	if err != nil {
		return err
	}
	if !f.stoppable {
		env.Stop = nil
	}
	j := job.Flush{Version: v, Memtables: mems, Snapshots: f.snapshots, Limit: f.limit, Values: files}
	out, err := j.Do(env)
	out.Stats.CountIn(&d.counters, d.log)
	if err != nil {
		dropCopies(d, parts)
		return err
	}
	info := FlushInfo{Memtables: len(mems), Files: len(out.Tables), Bytes: out.Bytes(), BlobFiles: len(out.Blobs),
		BlobBytes: out.BlobBytes()}
	e := &manifest.Edit{Slots: manifest.Kept{Parts: parts}}
	out.AddTo(e, 0, 0)
	files.List(e)
	if len(out.Tables) > 0 {
		info.Table = out.Tables[0].Num
	}
	err = d.applyEdit(func() *manifest.Edit {
		e.LogNum, e.LastSeq = d.mem.Log, base.SeqNum(mems[len(mems)-1].LastSeq.Load())
		if len(d.imms) > len(mems) {
			e.LogNum = d.imms[len(mems)].Log
		}
		if f.next != nil {
			e.LogNum, e.LastSeq = f.next.ID(), d.seq() // nothing that was ever visible is left out
		}
		return e
	}, func() {
		files.Installed(d.current)
		if f.next != nil {
			d.imms, d.mem = nil, d.nextMemTable(0, f.next.ID())
			d.early.Renew()
			return
		}
		d.imms = append([]*memTable(nil), d.imms[len(mems):]...)
	})
	if err != nil {
		dropCopies(d, slices.DeleteFunc(parts, func(p manifest.KeptPart) bool { return e.Slots.Has(p.LogName()) }))
		return err
	}
	dropCopies(d, parts) // unless a slot needs them still
	for _, m := range mems {
		d.cleaner.File(manifest.Path(d.dir, manifest.FileWAL, m.Log))
	}
	info.Duration = time.Since(start)
	d.counters.Flushes.Add(1)
	d.counters.FlushBytes.Add(uint64(info.Bytes))
	d.counters.BlobWritten.Add(uint64(info.BlobBytes))
	d.counters.Latencies.Flushed(info.Duration)
	d.log.Debug("flushed", "memtables", info.Memtables, "table", info.Table, "files", info.Files, "bytes",
		info.Bytes, "blob files", info.BlobFiles, "of their bytes", info.BlobBytes, "duration", info.Duration)
	tell(d, "Flushed", d.opts.Events.Flushed, info)
	return nil
}

// waitForBackground returns when no flush, no compaction and no ingest runs, no memtable is examined, and nothing is
// being prepared.
func (d *DB) waitForBackground() {
	d.early.Wait()
	d.logs.Wait(false)
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.flushing || d.compactions.Running > 0 || d.ingesting > 0 {
		d.progress.Wait()
	}
}

// measureMemtable returns the log of the active memtable, which names it, and its size.
func (d *DB) measureMemtable() (log uint64, size int64) {
	n := counters.OwnStripe()
	s := d.acquire(n)
	if s == nil {
		return 0, 0
	}
	defer s.release(n)
	return s.mem.Log, s.mem.Size()
}

// examineMemtable flushes the active memtable if that is worth it. If not, it returns when to examine the memtable
// again because values expire; 0: when it has grown.
func (d *DB) examineMemtable() (again time.Duration) {
	d.clock.ask()
	now := d.clock.last()
	n := counters.OwnStripe()
	s := d.acquire(n)
	if s == nil {
		return 0
	}
	defer s.release(n)
	if s.mem.Sealed() { // no writer comes that would replace it
		_ = d.flushEarly(s.mem.Log)
		return 0
	}
	p := compaction.PendingOf(s.mem, now)
	p.LogEntries = d.objects.logEntries(s.mem.Log)
	if hidden := job.HiddenBy(&d.tables, s.version, s.version.Runs); hidden != nil {
		p.EstimateHidden(hidden)
	}
	d.mu.Lock()
	reason := ""
	if !d.compactions.Paused && d.compactions.Cause == nil { // else level 0 would only grow
		reason = d.compactionInput(d.current).EarlyFlush(p)
	}
	d.mu.Unlock()
	if reason == "" {
		return p.NextExpiry(now)
	}
	d.log.Debug("a memtable is flushed before it is full", "reason", reason, "entries", p.Entries, "tombstones",
		p.Deletes, "range tombstones", p.RangeDeletes)
	if err := d.flushEarly(s.mem.Log); err != nil {
		d.log.Debug("a memtable was not flushed before it is full", "error", err)
	}
	return 0
}

// flushEarly has the active memtable flushed if it still has this log, and MaxMemtables allows one more.
func (d *DB) flushEarly(log uint64) error {
	return d.commits.Exclusive(context.Background(), func() error {
		return d.rotateIf(func(m *memTable) bool { return m.Log == log && !m.Empty() })
	})
}

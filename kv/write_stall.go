package kv

import (
	"context"
	"sync"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/values"
)

// preparedShare: the next log and memtable are made when all except 1/preparedShare of the active memtable's room is in
// use.
const preparedShare = 8

// makeRoom returns the active memtable with arena bytes reserved in it, or a new one for the record of an order. It
// slows the writer down as work piles up, replaces a full memtable, and waits when memory, level 0, blob files or the
// disk are full. The caller leads the pipeline. If ctx ends meanwhile, the error is base.ErrContextEnded.
func (d *DB) makeRoom(ctx context.Context, arena, size int, own *memtable.Order) (*memTable, error) {
	if m := d.room.Load(); own == nil && m != nil && ctx.Err() == nil && m.Reserve(arena) {
		if m.Size() >= m.Capacity()-m.Capacity()/preparedShare && !d.logs.Asked() {
			d.logs.Prepare()
		}
		d.early.Written(m)
		return m, nil
	}
	d.clock.ask()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slowDown(ctx, size)
	for made, asked := false, false; ; {
		switch {
		case d.failure != nil:
			return nil, d.failure
		case ctx.Err() != nil:
			return nil, base.ErrContextEnded
		case made:
			d.early.Written(d.mem)
			return d.mem, nil
		case d.compactionInput(d.current).OnlyGC() && d.makesBlobSpace():
			d.stall(ctx, "the disk is full, and blob files wait to be collected")
		case own == nil && d.mem.Reserve(arena):
			d.early.Written(d.mem)
			return d.mem, nil
		case d.closing:
			return nil, ErrClosed
		case len(d.imms)+1 >= d.opts.MaxMemtables:
			d.stall(ctx, "memtables wait to be flushed")
		case compaction.Level0Over(d.current, d.opts.L0StopThreshold):
			if err := d.level0Stuck(); err != nil {
				return nil, d.describeFailure(compacting, err)
			}
			d.stall(ctx, "level 0 waits to be compacted")
		case !asked && d.compactionInput(d.current).ScarceSpace():
			d.mu.Unlock()
			d.askSpace()
			d.mu.Lock()
			asked = true
		case d.load().BlobPressure() >= 1 && d.makesBlobSpace():
			d.stall(ctx, "blob files wait to be collected")
		case d.compactions.Running > 0 && d.space.Awaits(2*d.opts.MemtableSize+memBytes(d.imms), d.cleaner.History):
			d.stall(ctx, "the disk is nearly full, and files wait to be removed")
		default:
			if err := d.rotateTo(arena, own); err != nil {
				return nil, err
			}
			made = own != nil
		}
	}
}

// noteRoom notes whether writes may go ahead without asking: no failure and no pressure keeps them. Then a goroutine
// that holds d.mu for long, for the choice of a compaction, say, does not hold them up. The caller holds d.mu, and has
// changed something of that.
func (d *DB) noteRoom() {
	if d.failure != nil || d.load().Slows() {
		d.room.Store(nil)
	} else {
		d.room.Store(d.mem)
	}
}

// stall waits for background work, or for the end of ctx. The caller holds d.mu.
func (d *DB) stall(ctx context.Context, reason string) {
	start := time.Now()
	defer broadcastAt(ctx, &d.progress)()
	d.scheduleFlush()
	d.scheduleCompactionsLocked()
	d.progress.Wait()
	waited := time.Since(start)
	d.counters.Stalls.Add(1)
	d.counters.StallNanos.Add(uint64(waited))
	d.counters.Latencies.Stalled(waited)
	d.mu.Unlock()
	tell(d, "Stalled", d.opts.Events.Stalled, StallInfo{Reason: reason, Duration: waited})
	d.mu.Lock()
}

// slowsWriters reports whether writes are slowed down, or the store closes: compactions must not be held back then.
func (d *DB) slowsWriters() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closing || d.load().Slows()
}

// load returns what the store has to do. The caller holds d.mu.
func (d *DB) load() *compaction.Load {
	return &compaction.Load{Input: d.compactionInput(d.current),
		Pending: values.LogBytes(d.imms) + memBytes(d.imms),
		Busy:    d.compactions.Running > 0 || len(d.imms) > 0 || d.memory.share.Background().Pending()}
}

// memBytes returns the bytes in memtables.
func memBytes(mems []*memTable) (bytes int64) {
	for _, m := range mems {
		bytes += m.Size()
	}
	return bytes
}

// Writers do not wait when nothing runs that could free space, or when compactions fail.
//
// A merge that a caller asked for may keep blob GC from the whole store for as long as it takes. Writers do not wait
// for it, but they are slowed down as during any other. So the lowest rate bounds what they add meanwhile, where fast
// overwrites would take several times the data. The copying after the merge goes batch by batch and frees space
// itself: writers wait for it.

// makesBlobSpace reports whether there is a compaction to wait for. The caller holds d.mu.
func (d *DB) makesBlobSpace() bool {
	s := &d.compactions
	if s.Cause != nil || s.Paused || s.Merges > 0 {
		return false
	}
	d.scheduleCompactionsLocked()
	return d.load().Busy
}

// Level 0 is kept short, or writers get an error that says why it is not. Its files are merged with each other when
// they cannot go down. Files that are left alone do not count, and writers do not wait when nothing is going to be
// merged.

// level0Stuck returns why level 0, which is full, does not get shorter: the cause of the last failure, or which damaged
// files keep all that is left in it from being merged. It is nil if something is going to be merged. The caller holds
// d.mu.
func (d *DB) level0Stuck() error {
	s := &d.compactions
	if s.Cause != nil {
		return s.Cause
	}
	d.scheduleCompactionsLocked()
	if s.Waits() || d.memory.share.Background().Pending() {
		return nil
	}
	return compaction.Level0Blocked(d.current, d.tables.Path)
}

// slowDown sleeps as the pressure of level 0 and of blob files asks, and no longer than the pressure lasts. That may be
// a tenth of the time that a large batch has to wait. The caller holds d.mu, which is released meanwhile. The end of
// ctx wakes it.
func (d *DB) slowDown(ctx context.Context, size int) {
	pressure := func() float64 { return d.load().Pressure(d.compactions.Cause) }
	most := d.compactions.Throttle.Sleep(pressure(), size)
	if most == 0 || d.closing {
		return
	}
	start, over := time.Now(), false
	defer broadcastAt(ctx, &d.progress)()
	defer time.AfterFunc(most, func() {
		d.mu.Lock()
		over = true
		d.progress.Broadcast()
		d.mu.Unlock()
	}).Stop()
	for !over && ctx.Err() == nil && !d.closing && d.failure == nil && pressure() > 0 {
		d.progress.Wait()
	}
	slept := time.Since(start)
	d.counters.Slowdowns.Add(1)
	d.counters.SlowdownNanos.Add(uint64(slept))
	d.counters.Latencies.Stalled(slept)
}

// broadcastAt lets waits on c notice that ctx has ended. The caller calls stop when it no longer waits.
func broadcastAt(ctx context.Context, c *sync.Cond) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		c.L.Lock()
		c.Broadcast()
		c.L.Unlock()
	})
}

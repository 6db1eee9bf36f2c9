package kv

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/version"
)

// makeRoom returns the active memtable with arena bytes reserved in it, or a new one for the record of an order. It
// slows the writer down as work piles up, replaces a full memtable, and waits when memory, level 0, blob files or the
// disk are full. The caller leads the pipeline. If ctx ends meanwhile, the error is base.ErrContextEnded.
func (d *DB) makeRoom(ctx context.Context, arena, size int, own *memtable.Order) (*memTable, error) {
	if m := d.room.Load(); own == nil && m != nil && ctx.Err() == nil && m.Reserve(arena) {
		if m.Size() >= m.Capacity()*(spareShare-1)/spareShare && !d.spareAsked.Load() {
			d.prepareSpare()
		}
		d.early.Written(m)
		return m, nil
	}
	d.askClock()
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
		case !asked && d.scarce():
			d.mu.Unlock()
			d.askSpace()
			d.mu.Lock()
			asked = true
		case d.blobPressure() >= 1 && d.makesBlobSpace():
			d.stall(ctx, "blob files wait to be collected")
		case d.awaitsRoom():
			d.stall(ctx, "the disk is nearly full, and files wait to be removed")
		default:
			if err := d.rotateTo(arena, own); err != nil {
				return nil, err
			}
			made = own != nil
		}
	}
}

// noteRoom notes whether writes may go ahead without asking: no failure and no pressure
// keeps them. Then a goroutine that holds d.mu for long, for the choice of a
// compaction, say, does not hold them up. The caller holds d.mu, and has changed
// something of that.
func (d *DB) noteRoom() {
	if d.failure != nil || d.underPressure() {
		d.room.Store(nil)
	} else {
		d.room.Store(d.mem)
	}
}

// stall waits for background work, or for the end of ctx. The caller holds d.mu.
func (d *DB) stall(ctx context.Context, reason string) {
	start := time.Now()
	defer d.broadcastAt(ctx)()
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

// underPressure reports whether writes are slowed down. The caller holds d.mu.
func (d *DB) underPressure() bool {
	return compaction.Level0Over(d.current, d.opts.L0SlowdownThreshold) || d.slowsForBlobs() > 0 || d.space.Full()
}

// slowsWriters reports whether writes are slowed down, or the store closes: compactions must not be held back then.
func (d *DB) slowsWriters() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closing || d.underPressure()
}

// pressure returns how much writers must be slowed down for level 0 and for blob files: not at all at 0, most at 1.
// The caller holds d.mu.
func (d *DB) pressure() float64 {
	pressure := d.slowsForBlobs()
	if compaction.Level0Over(d.current, d.opts.L0SlowdownThreshold) {
		over := compaction.Level0Backlog(d.current) - d.opts.L0SlowdownThreshold
		return max(pressure, min(float64(over+1)/float64(d.opts.L0StopThreshold-d.opts.L0SlowdownThreshold), 1))
	}
	if d.compactions.Cause != nil {
		return 0
	}
	return pressure
}

// Memtables that wait to be flushed count as garbage of blob files, and so do the blob files that commits wrote for
// them: their bytes come in any case. Writers do not wait when nothing runs that could free space, or when compactions
// fail.
//
// A merge that a caller asked for may keep blob GC from the whole store for as long as it takes. Writers do not wait
// for it, but they are slowed down as during any other. So slowRate bounds what they add meanwhile, where fast
// overwrites would take several times the data. The copying after the merge goes batch by batch and frees space
// itself: writers wait for it.

// blobPressure is compaction.BlobSpace.Pressure of the store. The caller holds d.mu.
func (d *DB) blobPressure() float64 {
	if d.current == nil || d.current.BlobTotals().Files == 0 {
		return 0
	}
	pending := 0.0
	for _, m := range d.imms {
		pending += float64(m.Size())
	}
	pending += float64(values.LogBytes(d.imms)) // no more than a memtable's, while a stream may have any length
	s := d.compactionInput(d.current).BlobSpace()
	return s.Pressure(pending, float64(d.opts.MemtableSize))
}

// slowsForBlobs is blobPressure, at most 1, while something runs, or is about to, that could free space. Else it is 0:
// to wait does not free what tables that are left alone hide. The caller holds d.mu.
func (d *DB) slowsForBlobs() float64 {
	if d.compactions.Running == 0 && len(d.imms) == 0 && !d.share.Background().Pending() {
		return 0
	}
	return min(d.blobPressure(), 1)
}

// makesBlobSpace reports whether there is a compaction to wait for. The caller holds d.mu.
func (d *DB) makesBlobSpace() bool {
	s := &d.compactions
	if s.Cause != nil || s.Paused || s.Merges > 0 {
		return false
	}
	d.scheduleCompactionsLocked()
	return s.Running > 0 || d.share.Background().Pending() || len(d.imms) > 0
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
	if s.Waits() || d.share.Background().Pending() {
		return nil
	}
	var damaged []string // in any level: those that overlap level 0 keep it from going down
	d.current.All(func(_ int, t *version.Table) {
		if t.Quarantined {
			damaged = append(damaged, d.tablePath(t.Num))
		}
	})
	if len(damaged) == 0 {
		return errors.New("level 0 is full, and no compaction can shorten it")
	}
	return fmt.Errorf("%w: level 0 is full, and its files cannot be merged because of damaged ones: %s", ErrCorruption,
		strings.Join(damaged, ", "))
}

// Writes are slowed down to about fastRate bytes per second when level 0 reaches the slowdown
// threshold, and to slowRate when it is nearly at the stop threshold. Blob files that exceed their
// limit slow them down likewise. In between, the rate falls exponentially, so that a writer sees
// latency grow and never a wall.
const (
	fastRate = 64 << 20
	slowRate = 1 << 20
	minSleep = time.Millisecond // shorter sleeps are saved up: timers are not finer
)

// slowDown sleeps as the pressure of level 0 and of blob files asks, and no longer than it lasts. The caller holds
// d.mu, which is released meanwhile. The end of ctx wakes it.
func (d *DB) slowDown(ctx context.Context, size int) {
	pressure := d.pressure()
	if pressure == 0 {
		d.slowDebt = 0
		return
	}
	rate := fastRate * math.Pow(float64(slowRate)/fastRate, pressure)
	d.slowDebt += time.Duration(float64(size) / rate * float64(time.Second))
	if d.slowDebt < minSleep || d.closing {
		return
	}
	most := min(d.slowDebt, time.Second)
	d.slowDebt = 0
	start := time.Now()
	d.sleepUnderPressure(ctx, most)
	slept := time.Since(start)
	d.counters.Slowdowns.Add(1)
	d.counters.SlowdownNanos.Add(uint64(slept))
	d.counters.Latencies.Stalled(slept)
}

// sleepUnderPressure waits until there is no pressure, and at most the given time. The pressure may be over in a tenth
// of the time that a large batch has to wait. The caller holds d.mu.
func (d *DB) sleepUnderPressure(ctx context.Context, most time.Duration) {
	defer d.broadcastAt(ctx)()
	over := false
	defer time.AfterFunc(most, func() {
		d.mu.Lock()
		over = true
		d.progress.Broadcast()
		d.mu.Unlock()
	}).Stop()
	for !over && ctx.Err() == nil && !d.closing && d.failure == nil && d.pressure() > 0 {
		d.progress.Wait()
	}
}

// broadcastAt lets waits on d.progress notice that ctx has ended. The caller calls
// stop when it no longer waits.
func (d *DB) broadcastAt(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		d.mu.Lock()
		d.progress.Broadcast()
		d.mu.Unlock()
	})
}

package kv

import (
	"context"
	"math"
	"time"

	"github.com/siftkv/siftkv/internal/memtable"
)

// A memTable holds the newest writes.
type memTable = memtable.Memtable

// newMemTable returns a memtable with arena bytes for points, whose writes are in a WAL.
func newMemTable(arena int64, log uint64) *memTable {
	m := memtable.New(int(arena))
	m.Log = log
	return m
}

// memtableArena is the arena of a memtable that takes MemtableSize with its index.
func (o *Options) memtableArena() int64 {
	return int64(memtable.CapacityWithin(int(o.MemtableSize)))
}

// memtableSlack is room beside a batch that gets a memtable of its own.
const memtableSlack = 4 << 10

// makeRoom returns the active memtable with arena bytes set aside in it. It
// slows the writer down as work piles up behind it, replaces a full memtable, and
// waits only when memory or level 0 is full. The caller leads the pipeline. If ctx
// ends meanwhile, the error is errGivenUp.
func (d *DB) makeRoom(ctx context.Context, arena, size int) (*memTable, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slowDown(ctx, size)
	for {
		switch {
		case d.failure != nil:
			return nil, d.failure
		case ctx.Err() != nil:
			return nil, errGivenUp
		case !d.mem.Crowded() && d.mem.Reserve(arena):
			return d.mem, nil
		case d.closing:
			return nil, ErrClosed
		case len(d.imms)+1 >= d.opts.MaxMemtables:
			d.stall(ctx, "memtables wait to be flushed")
		case d.level0Over(d.opts.L0StopThreshold):
			if err := d.level0Stuck(); err != nil {
				return nil, d.describeFailure(compacting, err)
			}
			d.stall(ctx, "level 0 waits to be compacted")
		default:
			if err := d.rotate(arena); err != nil {
				return nil, err
			}
		}
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
	d.counters.stalls.Add(1)
	d.counters.stallNanos.Add(uint64(waited))
	if f := d.opts.Events.Stalled; f != nil {
		d.mu.Unlock()
		f(StallInfo{Reason: reason, Duration: waited})
		d.mu.Lock()
	}
}

// Writes are slowed down to fastRate bytes per second when level 0 reaches the
// slowdown threshold, and to slowRate when it is nearly at the stop threshold:
// halving step by step, so that a writer sees latency grow and never a wall.
const (
	fastRate = 64 << 20
	slowRate = 1 << 20
	minSleep = time.Millisecond // shorter sleeps are saved up: timers are not finer
)

// slowDown sleeps as the pressure of level 0 asks. The caller holds d.mu, which
// is released meanwhile. The end of ctx wakes it.
func (d *DB) slowDown(ctx context.Context, size int) {
	if !d.level0Over(d.opts.L0SlowdownThreshold) {
		d.commits.slowDebt = 0
		return
	}
	over := level0Backlog(d.current) - d.opts.L0SlowdownThreshold
	pressure := min(float64(over+1)/float64(d.opts.L0StopThreshold-d.opts.L0SlowdownThreshold), 1)
	rate := fastRate * math.Pow(float64(slowRate)/fastRate, pressure)
	d.commits.slowDebt += time.Duration(float64(size) / rate * float64(time.Second))
	if d.commits.slowDebt < minSleep || d.closing {
		return
	}
	sleep := min(d.commits.slowDebt, time.Second)
	d.commits.slowDebt = 0
	d.mu.Unlock()
	select {
	case <-time.After(sleep):
	case <-ctx.Done():
	}
	d.mu.Lock()
	d.counters.slowdowns.Add(1)
	d.counters.slowNanos.Add(uint64(sleep))
}

// rotate makes the active memtable immutable, with its log, and starts new ones
// that have room for arena bytes. The caller leads the pipeline and holds d.mu,
// which is released during I/O.
func (d *DB) rotate(arena int) error {
	size := max(d.opts.memtableArena(), int64(arena)+memtableSlack)
	if d.mem.Empty() {
		d.mem = newMemTable(size, d.mem.Log) // too small for the batch
		d.installState()
		return nil
	}
	d.mu.Unlock()
	log, err := d.rotateLog()
	var next *memTable
	if err == nil {
		next = newMemTable(size, log.num) // out of the lock: clearing its memory takes milliseconds
	}
	d.mu.Lock()
	if err != nil {
		return err
	}
	d.mem.LastSeq.Store(uint64(d.commits.seq))
	d.imms = append(d.imms, d.mem)
	d.mem = next
	d.installState()
	d.scheduleFlush()
	return nil
}

// rotateLog ends the log and starts a new one.
func (d *DB) rotateLog() (*logFile, error) {
	p := &d.commits
	const what = "starting a new log"
	next, err := d.createLog(d.newFileNum())
	if err != nil {
		// The log that is there is whole, and is not broken: if the store closes before it
		// has healed, it can be synced.
		return nil, d.fail(brokenLog, what, err)
	}
	if err := p.log.w.End(); err != nil {
		d.discardLog(next)
		return nil, p.fail(d, what, err)
	}
	d.counters.walBytes.Add(uint64(p.log.w.Size()))
	p.unsynced = append(p.unsynced, p.log)
	p.log = next
	p.dropFlushedLogs(d)
	return next, nil
}

// dropFlushedLogs closes the ended logs whose writes are in tables: they need no
// sync any more.
func (p *commitPipeline) dropFlushedLogs(d *DB) {
	if len(p.unsynced) == 0 {
		return
	}
	d.mu.Lock()
	logNum := d.logNum
	d.mu.Unlock()
	for len(p.unsynced) > 0 && p.unsynced[0].num < logNum {
		if err := p.unsynced[0].w.CloseFile(); err != nil {
			d.log.Warn("a log could not be closed", "log", p.unsynced[0].num, "error", err)
		}
		p.unsynced = p.unsynced[1:]
	}
}

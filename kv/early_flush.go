package kv

import (
	"context"
	"time"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/job"
)

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

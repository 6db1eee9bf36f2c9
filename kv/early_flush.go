package kv

import (
	"context"
	"slices"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/version"
)

// A memtable is flushed before it is full if its log has many entries in an object store (see objects_backlog.go), or
// if its table would start a worthwhile compaction. Long stretches of tombstones and expired values make it
// worthwhile, as every scan over them passes all of them. So do entries that may hide large values, which take space
// until they meet. Such compactions are bounded as those for tables are.

// A pendingTable is what is known of the table that a flush of the active memtable would write.
type pendingTable struct {
	*version.Table
	tombs   []rangedel.Tombstone // that do not overlap
	garbage uint64               // bytes of records in blob files that a flush lets go of
	keys    *sstable.KeySample

	logEntries int // of its log, in an object store
}

// pendingTableOf returns the table that a flush of m at now would write, if no snapshot needed older versions. It
// takes O(n), with n entries. The caller has a state with m.
func pendingTableOf(m *memTable, now uint64) (p pendingTable) {
	count, garbage := sstable.NewCount(), uint64(0)
	it := m.NewIter()
	for ok := it.First(); ok; ok = it.Next() {
		k, value := it.Key(), it.Value()
		size, expired := uint64(0), false
		if k.Kind().Expires() {
			expiry, _, cut := base.CutExpiry(value)
			expired = cut && expiry <= now
		}
		if k.Kind().Apart() {
			if h, _, err := blob.HandleOf(k.Kind(), value); err == nil {
				size = uint64(h.Length)
			}
		}
		if expired {
			k, value = base.MakeKey(k.User, k.SeqNum(), base.KindDelete), nil
		}
		if covered := count.Add(k, value); covered || expired {
			garbage += size
		}
	}
	if m.HasTombstones() {
		p.tombs = rangedel.NewSet(m.Tombstones().AppendAll(nil)).Clip(nil, nil, nil)
	}
	p.Table, p.garbage = &version.Table{Table: tablemeta.Of(0, count.Info(), p.tombs)}, garbage
	p.keys = count.Keys()
	p.RangeDeletes = uint64(len(p.tombs))
	return p
}

// nextExpiry returns the time from now until the next moment that is known at which values of the table have expired;
// 0 if no scan would notice.
func (p pendingTable) nextExpiry(now uint64) time.Duration {
	if p.Expiring < version.MinDense {
		return 0
	}
	next := p.LastExpiry
	for _, moment := range p.ExpiryOctiles {
		if moment > now {
			next = min(next, moment)
		}
	}
	return version.UntilExpiry(func(wait time.Duration) bool { return next <= now+uint64(wait/time.Microsecond) })
}

// measureMemtable returns the log of the active memtable, which names it, and its size.
func (d *DB) measureMemtable() (log uint64, size int64) {
	n := ownStripe()
	s := d.acquire(n)
	if s == nil {
		return 0, 0
	}
	defer d.release(s, n)
	return s.mem.Log, s.mem.Size()
}

// examineMemtable flushes the active memtable if that is worth it. If not, it returns when to examine the memtable
// again because values expire; 0: when it has grown.
func (d *DB) examineMemtable() (again time.Duration) {
	d.askClock()
	now := d.told.time()
	n := ownStripe()
	s := d.acquire(n)
	if s == nil {
		return 0
	}
	defer d.release(s, n)
	if s.mem.Sealed() { // no writer comes that would replace it
		_ = d.flushEarly(s.mem.Log)
		return 0
	}
	p := pendingTableOf(s.mem, now)
	p.logEntries = d.logEntries(s.mem.Log)
	if hidden := d.hiddenIn(s.version, s.version.Runs); hidden != nil {
		p.Garbage.Hides = p.keys.Estimate(hidden)
	}
	d.mu.Lock()
	reason := d.flushReason(p)
	d.mu.Unlock()
	if reason == "" {
		return p.nextExpiry(now)
	}
	d.log.Debug("a memtable is flushed before it is full", "reason", reason, "entries", p.Entries, "tombstones",
		p.Deletes, "range tombstones", p.RangeDeletes)
	if err := d.flushEarly(s.mem.Log); err != nil {
		d.log.Debug("a memtable was not flushed before it is full", "error", err)
	}
	return 0
}

// flushReason says why the active memtable, which p describes, must be flushed before it is full; "": it need not. The
// caller holds d.mu.
func (d *DB) flushReason(p pendingTable) string {
	v := d.current
	c := &d.compactions.pausedCompactions
	if p.Entries+p.RangeDeletes == 0 || c.paused || c.cause != nil || v.NumRuns(0) >= d.opts.L0SlowdownThreshold ||
		d.space.free.Load() < d.opts.MemtableSize {
		return "" // there is nothing to flush, level 0 would only grow, or there is no room for it
	}
	if p.logEntries >= manyAtRest {
		return reasonLongLog
	}
	in := d.compactionInput(v)
	before := v.Levels[0].DenseDeletes
	merged := d.mergedWith(v, p)
	if p.DenseDeletes > 0 && !in.SeenBySnapshot(p.LargestSeq) && version.WorthMerging(before+p.DenseDeletes, merged) &&
		!version.WorthMerging(before, merged-p.Entries) {
		return compaction.ReasonTombstones
	}
	s := in.BlobSpace()
	allowed := s.MaxHidden
	if s.Live == 0 {
		allowed = float64(in.NewBlobSize(v))
	}
	hides := min(float64(p.Garbage.Hides+v.BlobBytesUnder(p.tombs)), s.Live) + float64(p.garbage)
	if !s.NeedsMerge() && s.Hidden+hides > allowed {
		return compaction.ReasonHidden
	}
	return ""
}

// mergedWith returns the number of entries that a compaction of level 0 would merge after a flush of p. The caller
// holds d.mu.
func (d *DB) mergedWith(v *version.Version, p pendingTable) uint64 {
	if d.opts.Compaction != Leveled {
		entries := p.Entries
		for n := range v.Levels {
			entries += v.Levels[n].Entries
		}
		return entries
	}
	baseLevel, _ := d.opts.compaction().UsedLevels(v)
	s := version.SpanOf(append(slices.Clip(v.Level0()), p.Table))
	return p.Entries + v.Levels[0].Entries + version.EntriesOf(v.Levels[baseLevel].Overlapping(s.Lo, s.Hi))
}

// flushEarly has the active memtable flushed if it still has this log, and MaxMemtables allows one more.
func (d *DB) flushEarly(log uint64) error {
	return d.commits.Exclusive(context.Background(), func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.mem.Log != log || d.mem.Empty() || d.failure != nil || d.closing || len(d.imms)+1 >= d.opts.MaxMemtables {
			return nil
		}
		return d.rotate()
	})
}

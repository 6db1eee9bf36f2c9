package kv

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/siftkv/siftkv/internal/version"
)

// Tables that are mostly waste are rewritten although their level is not too large:
// tombstones cost every scan over them and hold on to what they delete, and expired
// values and old versions take space. What a table would lose can depend on the time that
// passes and on snapshots that close, so both start a look.

// mostlyWaste reports whether half of the tables' entries would go if they were rewritten
// at a place where nothing is below them. A range tombstone weighs as much as fifty. In
// the last level any range tombstone will do, since it has nothing to hide any more, and
// versions under newer ones, which only a snapshot kept, weigh as much as two: they take the
// space of values. In level 0 only what has expired counts: tombstones are on their way down.
func mostlyWaste(tables []*version.Table, level int, now uint64) bool {
	var waste, entries uint64
	for _, t := range tables {
		waste += t.ExpiryOctiles.Expired(t.Expiring, t.LastExpiry, now)
		entries += t.Entries + t.RangeDeletes
		if level == 0 {
			continue
		}
		waste += t.Deletes + 50*t.RangeDeletes
		if level == lastLevel {
			waste += 2 * t.Overwritten
			if t.RangeDeletes > 0 {
				return true
			}
		}
	}
	return waste > 0 && 2*waste >= entries
}

// heldBySnapshots reports whether a snapshot may see what is waste without it.
func (d *DB) heldBySnapshots(tables []*version.Table) bool {
	oldest, held := d.snapshots.oldest()
	return held && slices.ContainsFunc(tables, func(t *version.Table) bool { return oldest < t.LargestSeq })
}

// pickWaste takes a table that is mostly waste down, or rewrites it in the last level,
// where there is waste only because a snapshot needed it, or time has passed. Of level 0,
// which goes down soon as it is, it takes what has mostly expired.
func (d *DB) pickWaste(v *version.Version, baseLevel int) *compaction {
	const reason = "a file is mostly tombstones, or values that expired or were overwritten"
	now := d.now()
	for n := baseLevel; n < NumLevels; n++ {
		for _, t := range v.Levels[n].Tables {
			one := []*version.Table{t}
			if t.Compacting || !mostlyWaste(one, n, now) || n == lastLevel && d.heldBySnapshots(one) {
				continue
			}
			c := &compaction{reason: reason, level: n, output: min(n+1, lastLevel)}
			if n < lastLevel {
				c.inputs[n+1] = v.Levels[n+1].Overlapping(t.Smallest, t.UpperBound())
			}
			c.inputs[n] = one
			if !d.conflicts(c) {
				return c
			}
		}
	}
	if expiredInLevel0(v, now) {
		if c, _ := d.pickLevel0(v, baseLevel); c != nil && worthRewriting(c.inputs[0], c.tables()) {
			return c
		}
	}
	return nil
}

// worthRewriting reports whether tables that are mostly waste are enough to rewrite others
// with them: a few expired values must not have the whole store rewritten. What is left for
// that reason is less than a tenth of what it would be merged with, and goes with the next
// compaction that takes it. A range tombstone may free any number of entries.
func worthRewriting(waste, all []*version.Table) bool {
	ranges := slices.ContainsFunc(waste, func(t *version.Table) bool { return t.RangeDeletes > 0 })
	return ranges || levelFactor*entriesOf(waste) >= entriesOf(all)
}

// expiredInLevel0 reports whether a file of level 0 has mostly expired.
func expiredInLevel0(v *version.Version, now uint64) bool {
	return slices.ContainsFunc(v.Levels[0].Tables, func(t *version.Table) bool {
		return mostlyWaste([]*version.Table{t}, 0, now)
	})
}

// pickWasteRuns merges a run that is mostly waste, and all that are older, or takes level 0
// down for what has expired there.
func (d *DB) pickWasteRuns(v *version.Version) *compaction {
	const reason = "a run is mostly tombstones, or values that expired or were overwritten"
	now := d.now()
	if expiredInLevel0(v, now) {
		if c := d.ifFree(toNextLevel(v, reason, 0)); c != nil {
			return c
		}
	}
	for i, r := range v.Runs {
		level := wasteLevel(v, i)
		if !mostlyWaste(r.Tables, level, now) || level == lastLevel && d.heldBySnapshots(r.Tables) {
			continue
		}
		if c := d.ifFree(compactRuns(reason, v.Runs[i:])); c != nil && worthRewriting(r.Tables, c.tables()) {
			return c
		}
	}
	return nil
}

// wasteLevel returns the level by whose rules the i-th run is mostly waste or not: the last
// one's if nothing is older.
func wasteLevel(v *version.Version, i int) int {
	if i == len(v.Runs)-1 {
		return lastLevel
	}
	return 1
}

// Bounds of the time until a look at what has expired: the clock of the options need not
// go as the system's does.
const (
	minExpiryWait = time.Second
	maxExpiryWait = time.Hour
)

// wakeAtExpiry has a look taken for compactions when the next tables get to be mostly waste
// by the time that passes: an idle store has nothing else to start one. The caller holds
// d.mu.
func (d *DB) wakeAtExpiry() {
	now, wait := d.now(), time.Duration(0)
	consider := func(tables []*version.Table, level int) {
		if w := untilWaste(tables, level, now); w > 0 && (wait == 0 || w < wait) {
			wait = w
		}
	}
	v := d.current
	v.All(func(level int, t *version.Table) {
		if level == 0 || d.opts.Compaction == Leveled {
			consider([]*version.Table{t}, level)
		}
	})
	if d.opts.Compaction != Leveled {
		for i, r := range v.Runs {
			consider(r.Tables, wasteLevel(v, i))
		}
	}
	if wait == 0 {
		return
	}
	restart(&d.compactions.expiry, wait, d.scheduleCompactions)
}

// untilWaste returns how long to wait, within the bounds, until tables that are rewritten
// together are mostly waste by the time that passes; 0 if they never are, or are already.
func untilWaste(tables []*version.Table, level int, now uint64) time.Duration {
	expiring := slices.ContainsFunc(tables, func(t *version.Table) bool { return t.Expiring > 0 })
	if !expiring || mostlyWaste(tables, level, now) || !mostlyWaste(tables, level, math.MaxUint64) {
		return 0
	}
	steps := sort.Search(int(maxExpiryWait/minExpiryWait), func(steps int) bool {
		return mostlyWaste(tables, level, now+uint64(steps)*uint64(minExpiryWait/time.Microsecond))
	})
	return time.Duration(steps) * minExpiryWait
}

package version

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/siftkv/siftkv/internal/manifest"
)

// Tables that are mostly waste are rewritten although their level is not too large:
// tombstones cost every scan over them and hold on to what they delete, and expired
// values and old versions take space. What a table would lose can depend on the time that
// passes and on snapshots that close, so both start a look.

const lastLevel = manifest.NumLevels - 1

// MostlyWaste reports whether half of the tables' entries would go if they were rewritten
// at a place where nothing is below them. A range tombstone weighs as much as fifty. In
// the last level any range tombstone will do, since it has nothing to hide any more, and
// versions under newer ones, which only a snapshot kept, weigh as much as two: they take the
// space of values. In level 0 only what has expired counts: tombstones are on their way down.
func MostlyWaste(tables []*Table, level int, now uint64) bool {
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

// WorthRewriting reports whether tables that are mostly waste are enough to rewrite others
// with them: a few expired values must not have the whole store rewritten. What is left for
// that reason is less than a tenth of what it would be merged with, and goes with the next
// compaction that takes it. A range tombstone may free any number of entries.
func WorthRewriting(waste, all []*Table) bool {
	ranges := slices.ContainsFunc(waste, func(t *Table) bool { return t.RangeDeletes > 0 })
	return ranges || 10*EntriesOf(waste) >= EntriesOf(all)
}

// ExpiredInLevel0 reports whether a file of level 0 has mostly expired.
func (v *Version) ExpiredInLevel0(now uint64) bool {
	return slices.ContainsFunc(v.Levels[0].Tables, func(t *Table) bool { return MostlyWaste([]*Table{t}, 0, now) })
}

// WasteLevel returns the level by whose rules the i-th run is mostly waste or not: the last
// one's if nothing is older.
func (v *Version) WasteLevel(i int) int {
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

// UntilWaste returns how long to wait, within the bounds, until tables that are rewritten
// together are mostly waste by the time that passes; 0 if they never are, or are already.
func UntilWaste(tables []*Table, level int, now uint64) time.Duration {
	expiring := slices.ContainsFunc(tables, func(t *Table) bool { return t.Expiring > 0 })
	if !expiring || MostlyWaste(tables, level, now) || !MostlyWaste(tables, level, math.MaxUint64) {
		return 0
	}
	steps := sort.Search(int(maxExpiryWait/minExpiryWait), func(steps int) bool {
		return MostlyWaste(tables, level, now+uint64(steps)*uint64(minExpiryWait/time.Microsecond))
	})
	return time.Duration(steps) * minExpiryWait
}

// SizeOf returns the bytes of tables.
func SizeOf(tables []*Table) (bytes int64) {
	for _, t := range tables {
		bytes += t.Size
	}
	return bytes
}

// EntriesOf returns the number of point entries of tables.
func EntriesOf(tables []*Table) (n uint64) {
	for _, t := range tables {
		n += t.Entries
	}
	return n
}

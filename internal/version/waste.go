package version

import (
	"slices"
	"sort"
	"time"

	"github.com/siftkv/siftkv/internal/manifest"
)

// Tables that are mostly garbage are rewritten even if their level is not too large:
// tombstones cost every scan over them and keep what they delete, and expired values and
// old versions take space. What a table would lose can depend on time and on closed
// snapshots, so both start a check.

const lastLevel = manifest.NumLevels - 1

// MostlyWaste reports whether half of the tables' entries would go if they were rewritten with
// nothing below them. A range tombstone counts as fifty entries. In the last level one range
// tombstone is enough, since it has nothing to hide any more. There, overwritten versions, which
// only a snapshot kept, count as two: they take the space of values. In level 0 only expired
// entries count: tombstones are on their way down.
func MostlyWaste(tables []*Table, level int, now uint64) bool {
	var s Sums
	expired := uint64(0)
	for _, t := range tables {
		expired += t.expired(now)
		s.Entries += t.Entries
		s.Deletes += t.Deletes
		s.Overwritten += t.Overwritten
		s.RangeDeletes += t.RangeDeletes
	}
	return s.mostlyWaste(expired, level)
}

// expired returns about how many of the table's entries have expired at now.
func (t *Table) expired(now uint64) uint64 {
	return t.ExpiryOctiles.Expired(t.Expiring, t.LastExpiry, now)
}

// mostlyWaste is MostlyWaste of tables with these sums, of whose entries a number have expired.
func (s *Sums) mostlyWaste(expired uint64, level int) bool {
	waste := expired
	if level > 0 {
		waste += s.Deletes + 50*s.RangeDeletes
	}
	if level == lastLevel {
		if s.RangeDeletes > 0 {
			return true
		}
		waste += 2 * s.Overwritten
	}
	return waste > 0 && 2*waste >= s.Entries+s.RangeDeletes
}

// MostlyWaste is MostlyWaste of the run's tables. It visits only those of which a part has
// expired.
func (r *Run) MostlyWaste(level int, now uint64) bool {
	return r.root.sums.mostlyWaste(r.root.expired(now), level)
}

// expired returns about how many entries have expired at now.
func (n *node) expired(now uint64) uint64 {
	return n.total(func(s *Sums) (uint64, bool) { return s.expiring(s.Expiring, now) },
		func(t *Table) uint64 { return t.expired(now) })
}

// expiring returns which part of what has an expiry has expired at now, if that is all or nothing.
func (s *Sums) expiring(all, now uint64) (part uint64, known bool) {
	switch {
	case all == 0 || s.FirstExpiry > now:
		return 0, true
	case s.LastExpiry <= now:
		return all, true
	}
	return 0, false
}

// total adds up a figure of the tables under a node. It visits only those of which the sums of nodes do not tell it.
func (n *node) total(told func(*Sums) (part uint64, known bool), of func(*Table) uint64) uint64 {
	sum, known := told(&n.sums)
	if known {
		return sum
	}
	sum = 0
	for _, k := range n.kids {
		sum += k.total(told, of)
	}
	for _, t := range n.tables {
		sum += of(t)
	}
	return sum
}

// WorthRewriting reports whether tables that are mostly garbage are worth rewriting others with
// them: a few expired values must not cause a rewrite of the whole store. What stays for that
// reason is less than a tenth of all, and goes with the next compaction of its tables. A range
// tombstone may free any number of entries.
func WorthRewriting(waste, all []*Table) bool {
	ranges := slices.ContainsFunc(waste, func(t *Table) bool { return t.RangeDeletes > 0 })
	return ranges || 10*EntriesOf(waste) >= EntriesOf(all)
}

// ExpiredInLevel0 reports whether a file of level 0 has mostly expired.
func (v *Version) ExpiredInLevel0(now uint64) bool {
	for range v.Levels[0].Where(func(s *Sums) bool { return s.FirstWaste <= now }) {
		return true
	}
	return false
}

// WasteLevel returns the level for MostlyWaste of the i-th run below level 0: the last one if
// nothing is older.
func (v *Version) WasteLevel(i int) int {
	if i == len(v.Below())-1 {
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

// UntilNextWaste returns how long to wait, within the bounds, until time makes another table of a
// level mostly garbage; 0 if none ever becomes so.
func (l *Level) UntilNextWaste(now uint64) time.Duration {
	next := uint64(never)
	for range l.Where(func(s *Sums) bool {
		if s.FirstWaste > now {
			next = min(next, s.FirstWaste)
			return false
		}
		return s.LastWaste > now
	}) {
	}
	if next == never {
		return 0
	}
	wait := time.Duration(min(next-now, uint64(maxExpiryWait/time.Microsecond))) * time.Microsecond
	return max(min((wait+minExpiryWait-1).Truncate(minExpiryWait), maxExpiryWait), minExpiryWait)
}

// UntilWaste returns how long to wait, within the bounds, until time makes the run mostly garbage;
// 0 if it never is, or is already.
func (r *Run) UntilWaste(level int, now uint64) time.Duration {
	if r.root.sums.Expiring == 0 || r.MostlyWaste(level, now) || !r.MostlyWaste(level, never) {
		return 0
	}
	return UntilExpiry(func(wait time.Duration) bool { return r.MostlyWaste(level, now+uint64(wait/time.Microsecond)) })
}

// UntilExpiry returns the shortest wait, within the bounds, after which something is due that once it is due stays it.
func UntilExpiry(due func(wait time.Duration) bool) time.Duration {
	most := int(maxExpiryWait / minExpiryWait)
	return time.Duration(max(sort.Search(most, func(n int) bool { return due(time.Duration(n) * minExpiryWait) }), 1)) *
		minExpiryWait
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

package version

import (
	"slices"
	"sort"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
)

// Tables that are mostly garbage are rewritten even if their level is not too large: tombstones cost every scan over
// them and keep what they delete, and expired values and old versions take space. What a table would lose can depend on
// time and on closed snapshots, so both start a check.

const lastLevel = manifest.NumLevels - 1

// MostlyGarbage reports whether half of the tables' entries would go if they were rewritten with nothing below them. A
// range tombstone counts as fifty entries. In the last level one range tombstone is enough, since it has nothing to
// hide any more. There, overwritten versions, which only a snapshot kept, count as two: they take the space of values.
// In level 0 only expired entries count: tombstones are on their way down.
func MostlyGarbage(tables []*Table, level int, now uint64) bool {
	var s Totals
	expired := uint64(0)
	for _, t := range tables {
		expired += t.expired(now)
		s.Entries += t.Entries
		s.Deletes += t.Deletes
		s.Overwritten += t.Overwritten
		s.RangeDeletes += t.RangeDeletes
	}
	return s.mostlyGarbage(expired, level)
}

// expired returns about how many of the table's entries have expired at now.
func (t *Table) expired(now uint64) uint64 {
	return t.ExpiryOctiles.Expired(t.Expiring, t.LastExpiry, now)
}

// mostlyGarbage is MostlyGarbage of tables with these totals, of whose entries a number have expired.
func (s *Totals) mostlyGarbage(expired uint64, level int) bool {
	garbage := expired
	if level > 0 {
		garbage += s.Deletes + 50*s.RangeDeletes
	}
	if level == lastLevel {
		if s.RangeDeletes > 0 {
			return true
		}
		garbage += 2 * s.Overwritten
	}
	return garbage > 0 && 2*garbage >= s.Entries+s.RangeDeletes
}

// MostlyGarbage is MostlyGarbage of the run's tables. It visits only those of which a part has expired.
func (r *Run) MostlyGarbage(level int, now uint64) bool {
	return r.root.totals.mostlyGarbage(r.root.expired(now), level)
}

// expired returns about how many entries have expired at now.
func (n *node) expired(now uint64) uint64 {
	return n.total(func(s *Totals) (uint64, bool) { return s.expiring(s.Expiring, now) },
		func(t *Table) uint64 { return t.expired(now) })
}

// expiring returns which part of what has an expiry has expired at now, if that is all or nothing.
func (s *Totals) expiring(all, now uint64) (part uint64, known bool) {
	switch {
	case all == 0 || s.FirstExpiry > now:
		return 0, true
	case s.LastExpiry <= now:
		return all, true
	}
	return 0, false
}

// total adds up a figure of the tables under a node. It visits only those of which the totals of nodes do not tell it.
func (n *node) total(told func(*Totals) (part uint64, known bool), of func(*Table) uint64) uint64 {
	sum, known := told(&n.totals)
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

// WorthRewriting reports whether tables that are mostly garbage are worth rewriting others with them: a few expired
// values must not cause a rewrite of the whole store. What stays for that reason is less than a tenth of all, and goes
// with the next compaction of its tables. A range tombstone may free any number of entries.
func WorthRewriting(garbage, all []*Table) bool {
	ranges := slices.ContainsFunc(garbage, func(t *Table) bool { return t.RangeDeletes > 0 })
	return ranges || 10*EntriesOf(garbage) >= EntriesOf(all)
}

// ExpiredInLevel0 reports whether a file of level 0 has mostly expired.
func (v *Version) ExpiredInLevel0(now uint64) bool {
	for range v.Levels[0].Where(func(s *Totals) bool { return s.FirstGarbage <= now }) {
		return true
	}
	return false
}

// GarbageLevel returns the level for MostlyGarbage of the i-th run below level 0: the last one if nothing is older.
func (v *Version) GarbageLevel(i int) int {
	if i == len(v.Below())-1 {
		return lastLevel
	}
	return 1
}

// Bounds of the time until a look at what has expired: the clock of the options need not go as the system's does.
const (
	minExpiryWait = time.Second
	maxExpiryWait = time.Hour
)

// UntilNextGarbage returns how long to wait, within the bounds, until time makes another table of a
// level mostly garbage; 0 if none ever becomes so.
func (l *Level) UntilNextGarbage(now uint64) time.Duration {
	next := uint64(never)
	for range l.Where(func(s *Totals) bool {
		if s.FirstGarbage > now {
			next = min(next, s.FirstGarbage)
			return false
		}
		return s.LastGarbage > now
	}) {
	}
	if next == never {
		return 0
	}
	wait := time.Duration(min(next-now, uint64(maxExpiryWait/time.Microsecond))) * time.Microsecond
	return max(min((wait+minExpiryWait-1).Truncate(minExpiryWait), maxExpiryWait), minExpiryWait)
}

// UntilGarbage returns how long to wait, within the bounds, until time makes the run mostly garbage;
// 0 if it never is, or is already.
func (r *Run) UntilGarbage(level int, now uint64) time.Duration {
	if r.root.totals.Expiring == 0 || r.MostlyGarbage(level, now) || !r.MostlyGarbage(level, never) {
		return 0
	}
	return UntilExpiry(func(wait time.Duration) bool {
		return r.MostlyGarbage(level, now+uint64(wait/time.Microsecond))
	})
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

// In a tombstone cluster, each point tombstone costs every scan over it a step, in any level, until
// a compaction merges it with what it deletes. So clusters start a compaction, even if neither
// their file is mostly garbage nor their level too large.

// MinClustered is how many tombstones in clusters start a compaction: a scan over them takes some
// tenths of a millisecond.
const MinClustered = 4 << 10

// clusteredPart bounds what is rewritten for tombstone clusters: of the entries that are merged, at least one in
// clusteredPart must be such a tombstone. So each tombstone causes at most clusteredPart rewritten entries in each
// level that it passes. Fewer tombstones go down with the next compaction of their files.
const clusteredPart = 10

// Clustered reports whether tables with these totals, or a part of a level or run, have enough
// tombstones in clusters to start a compaction, if it is worth it.
func (s *Totals) Clustered() bool { return s.DenseDeletes >= MinClustered }

// WorthMerging reports whether a number of tombstones in clusters are worth a merge of entries entries,
// themselves included.
func WorthMerging(clustered, entries uint64) bool {
	return clustered >= MinClustered && clusteredPart*clustered >= entries
}

// Separated values that have expired or are overwritten take space in blob files until their entries are dropped. Short
// values take none there, however many expire. So each table counts its bytes in blob files alone.

// DroppableBlobBytes returns about how many bytes in blob files rewriting the table would free. It counts entries that
// have expired at now, and overwritten ones if the table has no entry newer than oldest, the oldest snapshot.
func (t *Table) DroppableBlobBytes(now uint64, oldest base.SeqNum) uint64 {
	dead := t.Garbage.Expired(now)
	if t.LargestSeq <= oldest {
		dead += t.Garbage.Overwritten
	}
	return min(dead, t.BlobBytes())
}

// DroppableBlobBytes is Table.DroppableBlobBytes of all tables. It visits only those of which a part has expired, and
// those of which neighbours have versions after the sequence number.
func (v *Version) DroppableBlobBytes(now uint64, oldest base.SeqNum) (sum uint64) {
	for _, r := range v.Runs {
		sum += r.root.overwrittenBlobBytes(oldest)
	}
	return sum + v.ExpiredBlobBytes(now)
}

// ExpiredBlobBytes returns about how many bytes in blob files are of values that have expired at now. It visits only
// those tables of which a part has.
func (v *Version) ExpiredBlobBytes(now uint64) (sum uint64) {
	for _, r := range v.Runs {
		sum += r.root.total(func(s *Totals) (uint64, bool) { return s.expiring(s.ExpiringBlobBytes, now) },
			func(t *Table) uint64 { return t.Garbage.Expired(now) })
	}
	return sum
}

// overwrittenBlobBytes returns how many bytes in blob files are of versions that are overwritten, in tables that have
// nothing after a sequence number.
func (n *node) overwrittenBlobBytes(oldest base.SeqNum) uint64 {
	return n.total(func(s *Totals) (uint64, bool) {
		switch {
		case s.OverwrittenBlobBytes == 0 || s.OldestTop > oldest:
			return 0, true
		case s.LargestSeq <= oldest:
			return s.OverwrittenBlobBytes, true
		}
		return 0, false
	}, func(t *Table) uint64 {
		if t.LargestSeq > oldest {
			return 0
		}
		return t.Garbage.Overwritten
	})
}

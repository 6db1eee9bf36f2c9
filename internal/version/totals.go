package version

import (
	"math"

	"github.com/siftkv/siftkv/internal/base"
)

// Totals are what tables hold together: of a level, of a run, or of a part of one, where they
// say whether a search has to go into it.
type Totals struct {
	Tables       int
	Bytes        int64
	Entries      uint64 // point entries
	Deletes      uint64 // of them, tombstones
	Merges       uint64 // of them, merge operands
	Expiring     uint64 // of them, values with an expiry
	Overwritten  uint64 // of them, those under a newer value or tombstone of their key
	DenseDeletes uint64 // of the tombstones, those in long stretches of nothing else
	RangeDeletes uint64
	FilterBytes  int64
	IndexBytes   int64
	BlobBytes    uint64 // that the records take in blob files of which the tables have handles
	// Of BlobBytes, what is of values with an expiry, and of those that are overwritten.
	ExpiringBlobBytes, OverwrittenBlobBytes uint64
	HiddenBytes                             uint64 // about how many blob bytes their points hide in older tables
	Unfiltered                              int    // tables with entries and no filter

	LargestSeq base.SeqNum // of all tables
	OldestTop  base.SeqNum // the smallest of the tables' largest sequence numbers

	// Bounds, over the tables, of the moment at which a table alone becomes mostly garbage at its
	// level (see MostlyGarbage), in microseconds since 1970 UTC; 0: it is already. A table that never
	// does counts for the first alone, as never.
	FirstGarbage, LastGarbage uint64
	// Bounds of the moments at which values expire.
	FirstExpiry, LastExpiry uint64
}

// never is a moment that does not come.
const never = math.MaxUint64

// noTotals are those of no tables.
func noTotals() Totals {
	return Totals{OldestTop: base.MaxSeqNum, FirstGarbage: never, FirstExpiry: never}
}

// totalsOf returns those of one table of a level.
func totalsOf(t *Table, level int) Totals {
	s := Totals{
		Tables: 1, Bytes: t.Size, Entries: t.Entries, Deletes: t.Deletes, Merges: t.Merges, Expiring: t.Expiring,
		Overwritten: t.Overwritten, DenseDeletes: t.DenseDeletes, RangeDeletes: t.RangeDeletes,
		FilterBytes: int64(t.FilterBytes), IndexBytes: int64(t.IndexBytes), LargestSeq: t.LargestSeq,
		OldestTop: t.LargestSeq, FirstExpiry: never,
	}
	g := &t.Garbage
	s.BlobBytes, s.HiddenBytes = t.BlobBytes(), g.HiddenBytes
	s.ExpiringBlobBytes, s.OverwrittenBlobBytes = g.Expiring, g.Overwritten
	if t.FilterBytes == 0 && t.Entries > 0 {
		s.Unfiltered = 1
	}
	if t.Expiring > 0 {
		s.FirstExpiry, s.LastExpiry = t.LastExpiry, t.LastExpiry
		for i, moment := range t.ExpiryOctiles {
			for _, moment := range []uint64{moment, g.Octiles[i]} {
				if moment > 0 {
					s.FirstExpiry = min(s.FirstExpiry, moment)
				}
			}
		}
	}
	s.FirstGarbage = t.garbageAt(level)
	if s.FirstGarbage != never {
		s.LastGarbage = s.FirstGarbage
	}
	return s
}

// add takes in other tables.
func (s *Totals) add(o *Totals) {
	s.Tables += o.Tables
	s.Bytes += o.Bytes
	s.Entries += o.Entries
	s.Deletes += o.Deletes
	s.Merges += o.Merges
	s.Expiring += o.Expiring
	s.Overwritten += o.Overwritten
	s.DenseDeletes += o.DenseDeletes
	s.RangeDeletes += o.RangeDeletes
	s.FilterBytes += o.FilterBytes
	s.IndexBytes += o.IndexBytes
	s.BlobBytes += o.BlobBytes
	s.ExpiringBlobBytes += o.ExpiringBlobBytes
	s.OverwrittenBlobBytes += o.OverwrittenBlobBytes
	s.HiddenBytes += o.HiddenBytes
	s.Unfiltered += o.Unfiltered
	s.LargestSeq = max(s.LargestSeq, o.LargestSeq)
	s.OldestTop = min(s.OldestTop, o.OldestTop)
	s.FirstGarbage, s.LastGarbage = min(s.FirstGarbage, o.FirstGarbage), max(s.LastGarbage, o.LastGarbage)
	s.FirstExpiry, s.LastExpiry = min(s.FirstExpiry, o.FirstExpiry), max(s.LastExpiry, o.LastExpiry)
}

// garbageAt returns the moment at which the table alone becomes mostly garbage at a level; 0 if it is already. The
// expired part grows in steps, at the known expiries of the table.
func (t *Table) garbageAt(level int) uint64 {
	at := func(now uint64) bool { return MostlyGarbage([]*Table{t}, level, now) }
	if at(0) {
		return 0
	}
	if t.Expiring == 0 {
		return never
	}
	for _, moment := range t.ExpiryOctiles {
		if at(moment) {
			return moment
		}
	}
	if at(t.LastExpiry) {
		return t.LastExpiry
	}
	return never
}

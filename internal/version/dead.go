package version

import "github.com/siftkv/siftkv/internal/base"

// Of values that lie apart, those that have expired or are overwritten take space in blob files until their entries
// are dropped. Short values beside them take none, however many expire: so each table's bytes in blob files are
// counted for its own entries alone.

// blobBytes returns what the records take in blob files of which the table has handles.
func (t *Table) blobBytes() (sum uint64) {
	for _, r := range t.Blobs {
		sum += r.Bytes
	}
	return sum
}

// apart returns the bytes in blob files of n of the table's entries, at the average.
func (t *Table) apart(n uint64) uint64 {
	if n == 0 || t.Entries == 0 {
		return 0
	}
	return uint64(float64(t.blobBytes()) * min(float64(n)/float64(t.Entries), 1))
}

// DeadApart returns about how many bytes in blob files are of entries that rewriting the table would drop, in the
// oldest run: of those that have expired at now, and, if nobody needs versions before a sequence number that the
// table has nothing after, of those that are overwritten.
func (t *Table) DeadApart(now uint64, oldest base.SeqNum) uint64 {
	dead := t.expired(now)
	if t.LargestSeq <= oldest {
		dead += t.Overwritten
	}
	return t.apart(dead)
}

// DeadApart is Table.DeadApart of all tables. It visits only those of which a part has expired, and those of which
// neighbours have versions after the sequence number.
func (r *Run) DeadApart(now uint64, oldest base.SeqNum) uint64 {
	return r.ExpiredApart(now) + r.root.overwrittenApart(oldest)
}

// ExpiredApart returns about how many bytes in blob files are of values that have expired at now. It visits only those
// tables of which a part has.
func (r *Run) ExpiredApart(now uint64) uint64 {
	return r.root.total(func(s *Sums) (uint64, bool) { return s.expiring(s.ExpiringApart, now) },
		func(t *Table) uint64 { return t.apart(t.expired(now)) })
}

// overwrittenApart returns about how many bytes in blob files are of versions that are overwritten, in tables that have
// nothing after a sequence number.
func (n *node) overwrittenApart(oldest base.SeqNum) uint64 {
	return n.total(func(s *Sums) (uint64, bool) {
		switch {
		case s.OverwrittenApart == 0 || s.OldestTop > oldest:
			return 0, true
		case s.LargestSeq <= oldest:
			return s.OverwrittenApart, true
		}
		return 0, false
	}, func(t *Table) uint64 {
		if t.LargestSeq > oldest {
			return 0
		}
		return t.apart(t.Overwritten)
	})
}

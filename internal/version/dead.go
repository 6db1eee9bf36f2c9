package version

import "github.com/siftkv/siftkv/internal/base"

// Separated values that have expired or are overwritten take space in blob files until their entries are dropped. Short
// values take none there, however many expire. So each table counts its bytes in blob files alone.

// DeadApart returns about how many bytes in blob files rewriting the table would free. It counts entries that have
// expired at now, and overwritten ones if the table has no entry newer than oldest, the oldest snapshot.
func (t *Table) DeadApart(now uint64, oldest base.SeqNum) uint64 {
	dead := t.Garbage.Expired(now)
	if t.LargestSeq <= oldest {
		dead += t.Garbage.Overwritten
	}
	return min(dead, t.BlobBytes())
}

// DeadApart is Table.DeadApart of all tables. It visits only those of which a part has expired, and those of which
// neighbours have versions after the sequence number.
func (v *Version) DeadApart(now uint64, oldest base.SeqNum) (sum uint64) {
	for _, r := range v.Runs {
		sum += r.root.overwrittenApart(oldest)
	}
	return sum + v.ExpiredApart(now)
}

// ExpiredApart returns about how many bytes in blob files are of values that have expired at now. It visits only those
// tables of which a part has.
func (v *Version) ExpiredApart(now uint64) (sum uint64) {
	for _, r := range v.Runs {
		sum += r.root.total(func(s *Sums) (uint64, bool) { return s.expiring(s.ExpiringApart, now) },
			func(t *Table) uint64 { return t.Garbage.Expired(now) })
	}
	return sum
}

// overwrittenApart returns how many bytes in blob files are of versions that are overwritten, in tables that have
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
		return t.Garbage.Overwritten
	})
}

package repair

import (
	"bytes"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// Memtables are flushed in order, so all writes before a table's last are in tables. The exception
// is a table of a flush of several files that a crash interrupted: it has the writes of its own
// keys, and the rest are in the logs alone. All writes of such a flush are still in logs.

// A besideLogs is the tables whose writes may all be in logs too.
type besideLogs struct {
	tables []manifest.Table
	last   uint64 // the last write of all of them
}

func (b *besideLogs) add(t *manifest.Table) {
	b.tables = append(b.tables, *t)
	b.last = max(b.last, uint64(t.LargestSeq))
}

// has reports whether a write, of which end is nil if it is no range tombstone, is in one of the
// tables, or the parts of the tombstone are in several. An operand that a table has must not
// come from a log again: a flush may have combined it with others.
func (b *besideLogs) has(k base.InternalKey, end []byte) bool {
	for at, seq := k.User, k.SeqNum(); ; {
		i := slices.IndexFunc(b.tables, func(t manifest.Table) bool { return t.LargestSeq >= seq && t.Contains(at) })
		if i < 0 {
			return false
		}
		upper := b.tables[i].UpperBound()
		if k.Kind() != base.KindRangeDelete || rangedel.CompareEnds(end, upper) <= 0 {
			return true
		}
		at = bytes.Clone(upper)
	}
}

// flushedTo returns the sequence number up to which all writes are in tables, as far as the tables
// show. It also returns the tables for which they do not show it. If tables are lost, their writes
// are taken from the logs that are left. A trusted manifest says which logs count.
func (r *repairer) flushedTo() (floor uint64, beside besideLogs) {
	if r.s.Trusted() || len(r.report.Lost) > 0 {
		return 0, r.rescued
	}
	first := base.MaxSeqNum // that a log has
	for i := range r.s.Logs {
		if l := &r.s.Logs[i]; l.Records > 0 {
			first = min(first, base.SeqNum(l.FirstSeq))
		}
	}
	for _, p := range r.pieces {
		if p.t.SmallestSeq >= first {
			beside.add(&p.t)
		} else {
			floor = max(floor, uint64(p.t.LargestSeq))
		}
	}
	return floor, beside
}

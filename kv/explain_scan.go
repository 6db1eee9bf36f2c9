package kv

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/iterator"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/version"
)

// A ScanExplanation is what an iterator with bounds does in memtables and files as it begins at the lower
// bound and goes on to the upper one.
type ScanExplanation struct {
	LowerBound, UpperBound []byte // nil: none
	WithinPrefix           bool   // filters can be asked for a prefix that all keys within the bounds have

	// OutOfBounds is how many files of each level lie outside; they are no steps.
	OutOfBounds [NumLevels]int
	Steps       []Step
}

// ExplainScan tells what an iterator with these options does, step by step. It says which files are ruled out by their
// bounds, a prefix filter or a range filter, and whether the others have entries within the bounds. It reads a block
// or two of each of these, which is much for bounds that span much of the store. It is not counted in Metrics, but the
// blocks that it reads are cached.
func (d *DB) ExplainScan(o *IterOptions) (*ScanExplanation, error) {
	s := d.acquire(0)
	if s == nil {
		return nil, d.unreadable()
	}
	defer d.release(s, 0)
	c := cursor{parts: new(iterParts)}
	if o != nil {
		c.bound(o)
	}
	e := &ScanExplanation{LowerBound: bytes.Clone(c.lower), UpperBound: bytes.Clone(c.upper)}
	e.memtable("memtable", s.mem)
	for _, m := range s.imms {
		e.memtable("memtable being flushed", m)
	}
	prefix := iterator.PrefixWithin(d.opts.Prefix, c.lower, c.upper, &counters.Prefix{})
	e.WithinPrefix = prefix != nil
	for _, r := range s.version.Runs {
		tables := r.Overlapping(c.lower, c.upper)
		e.OutOfBounds[r.Level] += r.Len() - len(tables)
		for _, t := range tables {
			if err := e.table(d, r.Level, t, prefix); err != nil {
				return e, err
			}
		}
	}
	return e, nil
}

// memtable adds the step of a memtable.
func (e *ScanExplanation) memtable(name string, m *memTable) {
	step := Step{Source: name, Level: -1, Verdict: RuledOutAsEmpty}
	if m.HasPoints() {
		var it memtable.Iter
		it.InitWithFolds(m)
		step.Verdict = ReadEmpty
		if it.SeekGE(base.SearchKey(e.LowerBound, base.MaxSeqNum)) &&
			(e.UpperBound == nil || bytes.Compare(it.Key().User, e.UpperBound) < 0) {
			step.Verdict = ReadEntries
		}
	}
	e.Steps = append(e.Steps, step)
}

// table adds the step of a table that the bounds meet.
func (e *ScanExplanation) table(d *DB, level int, t *version.Table, p *iterator.Prefix) error {
	n, probe, err := iterator.Look(t, &d.tables, e.LowerBound, e.UpperBound, p)
	if err != nil {
		return err
	}
	v := RuledOutByBounds // the bounds of its keys, which range tombstones do not widen
	switch {
	case n.DeniedByPrefix > 0:
		v = RuledOutByPrefixFilter
	case n.DeniedByRange > 0:
		v = RuledOutByRangeFilter
	case n.WithEntries > 0:
		v = ReadEntries
	case n.Empty+n.FalsePositives > 0:
		v = ReadEmpty
	}
	e.Steps = append(e.Steps, Step{Source: t.Name(), Level: level, Verdict: v, Probe: probe})
	return nil
}

// String returns one line per step, and one per level with files outside.
func (e *ScanExplanation) String() string {
	var b strings.Builder
	bound := func(k []byte) string {
		if k == nil {
			return "none"
		}
		return fmt.Sprintf("%q", k)
	}
	fmt.Fprintf(&b, "scan from %s to %s\n", bound(e.LowerBound), bound(e.UpperBound))
	for i := range e.Steps {
		s := &e.Steps[i]
		fmt.Fprintf(&b, "  %-28s %s", s.where(), s.Verdict.text())
		if s.Level >= 0 && (s.Verdict == ReadEmpty || s.Verdict == ReadEntries) {
			fmt.Fprintf(&b, " (blocks: %d from cache, %d from disk)", s.Probe.BlocksFromCache, s.Probe.BlocksFromDisk)
		}
		b.WriteByte('\n')
	}
	for level, n := range e.OutOfBounds {
		if n > 0 {
			fmt.Fprintf(&b, "  %-28s ruled out by bounds\n", fmt.Sprintf("L%d, files: %d", level, n))
		}
	}
	return b.String()
}

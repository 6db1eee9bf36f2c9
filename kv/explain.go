package kv

import (
	"bytes"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/cursor"
	"github.com/siftkv/siftkv/internal/iterator"
	trace "github.com/siftkv/siftkv/internal/lookuptrace"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/kv/explain"
	"github.com/siftkv/siftkv/kv/lookuptrace"
)

// Explain looks a key up as Get does and returns what it did, step by step. The lookup
// is not counted in Metrics, but the blocks that it reads are cached. A value in a blob
// file is left there, unless there are operands over it: explain.Lookup.Blob says what Get would read.
func (d *DB) Explain(key []byte) (*explain.Lookup, error) {
	s, _, now := d.present.enter(0)
	if s == nil {
		return nil, d.unreadable()
	}
	defer s.release(0)
	e := &explain.Lookup{Key: append([]byte{}, key...), Hash: filterpolicy.Hash(key)}
	l := lookup{d: d, key: key, hash: e.Hash, at: now, want: true, explain: e}
	found, err := l.run(s)
	e.Found, e.CoveredBy = found, uint64(l.cover)
	e.Operands = len(l.chain.operands)
	return e, err
}

func (l *lookup) explainMemtable(name string, verdict explain.Verdict, hit bool) {
	if l.explain == nil {
		return
	}
	switch {
	case hit:
		verdict = explain.ReadPresent
	case verdict == "":
		verdict = explain.ReadAbsent
	}
	l.explain.Steps = append(l.explain.Steps, explain.Step{Source: name, Level: -1, Verdict: verdict})
}

func (l *lookup) explainRuledOut(level int, t *version.Table, v explain.Verdict) {
	l.explain.Steps = append(l.explain.Steps, explain.Step{Source: t.Name(), Level: level, Verdict: v})
}

func (l *lookup) explainTable(level int, t *version.Table, p sstable.Probe, hit, operand bool) {
	v := explain.ReadAbsent
	switch {
	case hit:
		v = explain.ReadPresent
	case operand:
		v = explain.ReadOperand
	case p.Filter == sstable.Negative:
		v = explain.RuledOutByFilter
	case p.Filter == sstable.Remembered:
		v = explain.RuledOutByMemory
	case p.RuledOutByIndex:
		v = explain.RuledOutByIndex
	}
	l.explain.Steps = append(l.explain.Steps, explain.Step{Source: t.Name(), Level: level, Verdict: v, Probe: p})
}

// explainBlob notes where a blob value is stored. It reports whether that is enough: only operands need the value.
func (l *lookup) explainBlob(h blob.Handle) bool {
	l.explain.Blob = &explain.BlobValue{File: manifest.FileName(manifest.FileBlob, h.File), Offset: h.Offset,
		Stored: h.Length, Size: int(h.Size)}
	return !l.chain.begun
}

// ExplainScan tells what an iterator with these options does, step by step. It says which files are ruled out by their
// bounds, a prefix filter or a range filter, and whether the others have entries within the bounds. It reads a block
// or two of each of these, which is much for bounds that span much of the store. It is not counted in Metrics, but the
// blocks that it reads are cached.
func (d *DB) ExplainScan(o *IterOptions) (*explain.Scan, error) {
	s := d.acquire(0)
	if s == nil {
		return nil, d.unreadable()
	}
	defer s.release(0)
	var b cursor.Bounds
	if o != nil {
		b.Set((*cursor.Options)(o))
	}
	e := &explain.Scan{LowerBound: bytes.Clone(b.Lower), UpperBound: bytes.Clone(b.Upper)}
	e.Steps = append(e.Steps, scanStep("memtable", s.mem, e))
	for _, m := range s.imms {
		e.Steps = append(e.Steps, scanStep("memtable being flushed", m, e))
	}
	prefix := iterator.PrefixWithin(d.opts.Prefix, b.Lower, b.Upper, &counters.Prefix{})
	e.WithinPrefix = prefix != nil
	for _, r := range s.version.Runs {
		tables := r.Overlapping(b.Lower, b.Upper)
		e.OutOfBounds[r.Level] += r.Len() - len(tables)
		for _, t := range tables {
			n, probe, err := iterator.Look(t, &d.tables, b.Lower, b.Upper, prefix)
			if err != nil {
				return e, err
			}
			e.Steps = append(e.Steps, explain.Step{Source: t.Name(), Level: r.Level, Verdict: scanVerdict(&n),
				Probe: probe})
		}
	}
	return e, nil
}

// scanStep returns what the scan of e does in a memtable.
func scanStep(name string, m *memTable, e *explain.Scan) explain.Step {
	step := explain.Step{Source: name, Level: -1, Verdict: explain.RuledOutAsEmpty}
	if m.HasPoints() {
		var it memtable.Iter
		it.InitWithFolds(m)
		step.Verdict = explain.ReadEmpty
		if it.SeekGE(base.SearchKey(e.LowerBound, base.MaxSeqNum)) &&
			(e.UpperBound == nil || bytes.Compare(it.Key().User, e.UpperBound) < 0) {
			step.Verdict = explain.ReadEntries
		}
	}
	return step
}

// scanVerdict returns what became of a table that the bounds meet, by what an iterator counted in it.
func scanVerdict(n *counters.Scan) explain.Verdict {
	switch {
	case n.DeniedByPrefix > 0:
		return explain.RuledOutByPrefixFilter
	case n.DeniedByRange > 0:
		return explain.RuledOutByRangeFilter
	case n.WithEntries > 0:
		return explain.ReadEntries
	case n.Empty+n.FalsePositives > 0:
		return explain.ReadEmpty
	}
	return explain.RuledOutByBounds // those of its keys, which range tombstones do not widen
}

// TraceLookups has the tracer write down lookups and scans from now on, in place of the tracer before, if there is
// one; nil ends it. Lookups are those of Get, AppendGet, GetReader, Has, GetSize, Expiry and MultiGet (each key is
// one) of the store, its snapshots and its transactions. Errors are left out, and what a transaction finds among its
// own writes. GetSize and Expiry are written as Has is. A scan is what an iterator does from First, Last or a seek to
// the next, or until it is closed. The trace has where it starts, its bound there, and how many entries it reaches.
// One that fails is not written.
//
// Nothing ever waits for the tracer: a lookup or scan is written into memory, and what finds no room there, because w
// is slower, is dropped and counted. To record a key makes its lookup longer by two readings of the clock or so.
// Without a tracer a lookup or a seek makes one comparison.
func (d *DB) TraceLookups(t *lookuptrace.Tracer) {
	if t == nil {
		d.watch.SetTracer(nil)
		return
	}
	d.watch.SetTracer(trace.RecorderOf(t))
}

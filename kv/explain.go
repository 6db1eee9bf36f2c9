package kv

import (
	"fmt"
	"strings"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/version"
)

// A Verdict says what ruled a memtable or table out, or what a lookup or scan read in it.
type Verdict string

// The verdicts.
const (
	RuledOutByBounds         Verdict = "bounds"          // the key is outside the file's keys
	RuledOutByRangeTombstone Verdict = "range tombstone" // all that the file holds of the key is deleted
	RuledOutByFilter         Verdict = "filter"          // the filter excludes the key
	RuledOutByMemory         Verdict = "memory"          // the filter's "maybe" is remembered to be false
	RuledOutByIndex          Verdict = "index"           // the key is past the last block
	RuledOutAsEmpty          Verdict = "empty"           // the memtable has no entries
	ReadAbsent               Verdict = "absent"          // it was read, and no visible version is in it
	ReadPresent              Verdict = "present"         // it was read, and answered the lookup
	ReadOperand              Verdict = "operand"         // it was read, and has merge operands: the lookup went on

	// Those of scans.
	RuledOutByPrefixFilter Verdict = "prefix filter" // no key has the prefix that all keys within the bounds have
	RuledOutByRangeFilter  Verdict = "range filter"  // no key is within the bounds
	ReadEmpty              Verdict = "no entries"    // it was read, and nothing in it is within the bounds
	ReadEntries            Verdict = "entries"       // it was read, and has entries within the bounds
)

// A Step is one memtable or table that a lookup or a scan considered.
type Step struct {
	Source  string  // "memtable", "memtable being flushed", or the file's name
	Level   int     // -1 for memtables
	Verdict Verdict // what ruled it out, or what was read in it
	Probe   sstable.Probe
}

// An Explanation is what one lookup did, step by step.
type Explanation struct {
	Key   []byte
	Hash  uint64 // checked in every filter
	Found bool
	// CoveredBy is the sequence number of the newest range tombstone that covers the
	// key, or 0.
	CoveredBy uint64
	// Operands is how many values the merger combined, including the one under the
	// operands, or 0 if there were no operands.
	Operands int
	// Apart is where the value, or the one under the operands, is stored in a blob file. The step that answered the
	// lookup has found its handle. It is nil if the step has found the value itself.
	Apart *ApartValue
	Steps []Step
}

// An ApartValue is where a value is stored in a blob file.
type ApartValue struct {
	File   string // name of the blob file
	Offset int64  // of the value's record
	Stored int64  // bytes of the record, which Get reads: the key, checksums, and the value as it is stored
	Size   int    // bytes of the value
}

// Explain looks a key up as Get does and returns what it did, step by step. The lookup
// is not counted in Metrics, but the blocks that it reads are cached. A value in a blob
// file is left there, unless there are operands over it: Apart says what Get would read.
func (d *DB) Explain(key []byte) (*Explanation, error) {
	s, now := d.acquireNow(0)
	if s == nil {
		return nil, d.unreadable()
	}
	defer d.release(s, 0)
	e := &Explanation{Key: append([]byte{}, key...), Hash: filterpolicy.Hash(key)}
	l := lookup{d: d, key: key, hash: e.Hash, at: now, want: true, explain: e}
	found, err := l.run(s)
	e.Found, e.CoveredBy = found, uint64(l.cover)
	e.Operands = len(l.chain.operands)
	return e, err
}

// String returns one line per step.
func (e *Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "lookup of %q (hash %016x): found=%t\n", e.Key, e.Hash, e.Found)
	if e.CoveredBy > 0 {
		fmt.Fprintf(&b, "  a range tombstone of sequence %d covers the key\n", e.CoveredBy)
	}
	if e.Operands > 0 {
		fmt.Fprintf(&b, "  the value is merged from %d parts\n", e.Operands)
	}
	if a := e.Apart; a != nil {
		fmt.Fprintf(&b, "  the value lies apart, in %s at offset %d: %d bytes to read for a value of %d\n", a.File,
			a.Offset, a.Stored, a.Size)
	}
	for _, s := range e.Steps {
		fmt.Fprintf(&b, "  %-28s %s", s.where(), s.Verdict.text())
		if s.Probe.IndexLookup {
			fmt.Fprintf(&b, " (filter: %s; blocks: %d from cache, %d from disk)", s.Probe.Filter,
				s.Probe.BlocksFromCache, s.Probe.BlocksFromDisk)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (s *Step) where() string {
	if s.Level >= 0 {
		return fmt.Sprintf("L%d %s", s.Level, s.Source)
	}
	return s.Source
}

func (v Verdict) text() string {
	switch v {
	case ReadEmpty:
		return "read, nothing within the bounds"
	case ReadEntries:
		return "read, has entries within the bounds"
	case ReadAbsent:
		return "read, key is absent"
	case ReadPresent:
		return "read, key is present"
	case ReadOperand:
		return "read, has merge operands"
	case RuledOutAsEmpty:
		return "empty"
	case RuledOutByMemory:
		return "ruled out by memory of the filter's false positives"
	}
	return "ruled out by " + string(v)
}

func (l *lookup) explainMemtable(name string, verdict Verdict, hit bool) {
	if l.explain == nil {
		return
	}
	switch {
	case hit:
		verdict = ReadPresent
	case verdict == "":
		verdict = ReadAbsent
	}
	l.explain.Steps = append(l.explain.Steps, Step{Source: name, Level: -1, Verdict: verdict})
}

func (l *lookup) explainRuledOut(level int, t *version.Table, v Verdict) {
	l.explain.Steps = append(l.explain.Steps, Step{Source: t.Name(), Level: level, Verdict: v})
}

func (l *lookup) explainTable(level int, t *version.Table, p sstable.Probe, hit, operand bool) {
	v := ReadAbsent
	switch {
	case hit:
		v = ReadPresent
	case operand:
		v = ReadOperand
	case p.Filter == sstable.Negative:
		v = RuledOutByFilter
	case p.Filter == sstable.Remembered:
		v = RuledOutByMemory
	case p.RuledOutByIndex:
		v = RuledOutByIndex
	}
	l.explain.Steps = append(l.explain.Steps, Step{Source: t.Name(), Level: level, Verdict: v, Probe: p})
}

// explainApart notes where a blob value is stored. It reports whether that is enough: only operands need the value
// itself.
func (l *lookup) explainApart(h blob.Handle) bool {
	l.explain.Apart = &ApartValue{File: manifest.FileName(manifest.FileBlob, h.File), Offset: h.Offset,
		Stored: h.Length, Size: int(h.Size)}
	return !l.chain.begun
}

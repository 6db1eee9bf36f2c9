// Package explain says what one lookup or scan did, step by step: which memtables and files a store considered, what
// ruled them out, and what was read. kv.DB.Explain and kv.DB.ExplainScan make such explanations.
package explain

import (
	"fmt"

	"github.com/siftkv/siftkv/internal/sstable"
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

// where names the source, with its level.
func (s *Step) where() string {
	if s.Level >= 0 {
		return fmt.Sprintf("L%d %s", s.Level, s.Source)
	}
	return s.Source
}

// text is the verdict as a clause.
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

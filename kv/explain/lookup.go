package explain

import (
	"fmt"
	"strings"
)

// A Lookup is what one lookup did, step by step.
type Lookup struct {
	Key   []byte
	Hash  uint64 // checked in every filter
	Found bool
	// CoveredBy is the sequence number of the newest range tombstone that covers the key, or 0.
	CoveredBy uint64
	// Operands is how many values the merger combined, including the one under the
	// operands, or 0 if there were no operands.
	Operands int
	// Blob is where the value, or the one under the operands, is stored in a blob file. The step that answered the
	// lookup has found its handle. It is nil if the step has found the value itself.
	Blob  *BlobValue
	Steps []Step
}

// A BlobValue is where a value is stored in a blob file.
type BlobValue struct {
	File   string // name of the blob file
	Offset int64  // of the value's record
	Stored int64  // bytes of the record, which Get reads: the key, checksums, and the value as it is stored
	Size   int    // bytes of the value
}

// String returns one line per step.
func (e *Lookup) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "lookup of %q (hash %016x): found=%t\n", e.Key, e.Hash, e.Found)
	if e.CoveredBy > 0 {
		fmt.Fprintf(&b, "  a range tombstone of sequence %d covers the key\n", e.CoveredBy)
	}
	if e.Operands > 0 {
		fmt.Fprintf(&b, "  the value is merged from %d parts\n", e.Operands)
	}
	if a := e.Blob; a != nil {
		fmt.Fprintf(&b, "  the value is in blob file %s at offset %d: %d bytes to read for a value of %d\n", a.File,
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

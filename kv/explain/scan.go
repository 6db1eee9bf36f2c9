package explain

import (
	"fmt"
	"strings"

	"github.com/siftkv/siftkv/internal/manifest"
)

// A Scan is what an iterator with bounds does in memtables and files as it begins at the lower
// bound and goes on to the upper one.
type Scan struct {
	LowerBound, UpperBound []byte // nil: none
	WithinPrefix           bool   // filters can be asked for a prefix that all keys within the bounds have

	// OutOfBounds is how many files of each level lie outside; they are no steps.
	OutOfBounds [manifest.NumLevels]int
	Steps       []Step
}

// String returns one line per step, and one per level with files outside.
func (e *Scan) String() string {
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

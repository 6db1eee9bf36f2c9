package compaction

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/version"
)

// maxGrandparents bounds, in files of the output level, what a table may overlap two levels down: more would make its
// next compaction large.
const maxGrandparents = 10

func (o *Options) maxOverlap(j *Job) int64 {
	return maxGrandparents * o.TargetSize(j.Version, j.Output)
}

// Cuts say where the output tables of a span end, in addition to where they are full. It is for one writer, which
// goes through the keys in order.
type Cuts struct {
	gaps   [][]byte         // keys at which a table must end, of those that follow
	below  []*version.Table // of the level below the output, of those that follow
	bytes  int64            // of those that the open table has passed
	maxSum int64
}

// CutsOf returns the cuts of a job's output in a span, which may have no bounds.
func (o *Options) CutsOf(j *Job, span version.Span) *Cuts {
	c := &Cuts{maxSum: o.maxOverlap(j), gaps: j.Gaps}
	if j.Output > 0 && j.Output < lastLevel && !j.Kind.Rules().WholeRuns {
		lo, hi := span.Lo, span.Hi
		if lo == nil {
			lo = j.Span.Lo
		}
		if hi == nil {
			hi = j.Span.Hi
		}
		c.below = j.Version.Levels[j.Output+1].Overlapping(lo, hi)
	}
	return c
}

// Gap returns the next key, up to a key, at which the open table must end: no table reaches over tables of its run. It
// returns nil if there is none. At the end of the span any key that is left counts.
func (c *Cuts) Gap(key []byte, end bool) (gap []byte) {
	if len(c.gaps) == 0 || !end && bytes.Compare(c.gaps[0], key) > 0 {
		return nil
	}
	gap, c.gaps = c.gaps[0], c.gaps[1:]
	c.Begin()
	return gap
}

// TooMuch reports whether the open table would overlap too much below if it went on to key.
func (c *Cuts) TooMuch(key []byte) bool {
	for len(c.below) > 0 && c.below[0].Before(key) {
		c.bytes += c.below[0].Size
		c.below = c.below[1:]
	}
	return c.bytes > c.maxSum
}

// Begin notes that a table begins.
func (c *Cuts) Begin() { c.bytes = 0 }

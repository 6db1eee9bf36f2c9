package kv

import (
	"fmt"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
)

// Level 0 is kept short, or writers hear why not: its files are merged with each other when
// they cannot go down, files that are left alone do not count, and nobody waits when nothing
// is going to be merged.

// pickWithinLevel0 merges neighbours of level 0 into one table of level 0, when a table
// that is left alone, or a compaction that takes long, keeps them from going down: so that
// their number stays small. Of the stretches whose tables are not much larger than what is
// younger in them, which bounds what is rewritten by the logarithm of the number of flushes,
// the one with most tables is merged; if there is none and writers wait, the two neighbours
// that are smallest. The caller holds d.mu.
func (d *DB) pickWithinLevel0(v *version.Version) *compaction {
	tables := v.Levels[0].Tables // newest first
	var best []*version.Table
	for i := 0; i < len(tables); {
		n, bytes := 0, int64(0)
		for _, t := range tables[i:] {
			if t.Quarantined || t.Compacting || n > 0 && t.Size > 2*bytes {
				break
			}
			n++
			bytes += t.Size
		}
		if n > len(best) {
			best = tables[i : i+n]
		}
		i += max(n, 1)
	}
	if len(best) < 2 && level0Backlog(v) >= d.opts.L0StopThreshold {
		best = smallestPair(tables)
	}
	if len(best) < 2 {
		return nil
	}
	c := &compaction{reason: "level 0 has many files that cannot go down", level: 0, output: 0}
	c.inputs[0] = best
	if d.conflicts(c) {
		return nil
	}
	return c
}

// smallestPair returns the two neighbours that are smallest together, of those that can be
// merged, or nil.
func smallestPair(tables []*version.Table) (best []*version.Table) {
	for i := 1; i < len(tables); i++ {
		pair := tables[i-1 : i+1]
		free := !slices.ContainsFunc(pair, func(t *version.Table) bool { return t.Quarantined || t.Compacting })
		if free && (best == nil || sizeOf(pair) < sizeOf(best)) {
			best = pair
		}
	}
	return best
}

// level0Backlog returns how many files level 0 has for compactions to take: those that are
// left alone do not go away by waiting.
func level0Backlog(v *version.Version) int {
	n := 0
	for _, t := range v.Levels[0].Tables {
		if !t.Quarantined {
			n++
		}
	}
	return n
}

// level0Stuck returns why level 0, which is full, does not get shorter: the cause of the
// last failure, or that all that is left in it lies between files that are left alone. It
// is nil if something is going to be merged. The caller holds d.mu.
func (d *DB) level0Stuck() error {
	s := &d.compactions
	if s.cause != nil {
		return s.cause
	}
	d.scheduleCompactionsLocked()
	if s.running > 0 || len(s.wanted) > 0 || s.paused {
		return nil
	}
	var names []string
	for _, t := range d.current.Levels[0].Tables {
		if t.Quarantined {
			names = append(names, d.path(manifest.FileTable, t.Num))
		}
	}
	return fmt.Errorf("%w: level 0 is full, and its files lie between %s, which cannot be read", ErrCorruption,
		strings.Join(names, ", "))
}

// level0Over reports whether level 0 has so many files for compactions to take. The
// caller holds d.mu.
func (d *DB) level0Over(files int) bool {
	return len(d.current.Levels[0].Tables) >= files && level0Backlog(d.current) >= files
}

package kv

import (
	"bytes"
	"errors"
	"slices"
)

// Compact writes the memtables to disk and merges everything between lo and hi,
// both included (nil: unbounded), into the last level, without what was deleted
// or overwritten. It needs as much free space as what it merges. It returns when
// that is done; reads and writes go on meanwhile.
func (d *DB) Compact(lo, hi []byte) error {
	if lo != nil && hi != nil && bytes.Compare(lo, hi) > 0 {
		return d.writable()
	}
	if err := d.Flush(); err != nil {
		return err
	}
	c, err := d.beginManual(lo, hi)
	if c != nil {
		err = d.compact(c)
		d.end(c)
	}
	d.mu.Lock()
	d.compactions.manual--
	d.scheduleCompactionsLocked()
	d.mu.Unlock()
	d.progress.Broadcast()
	if errors.Is(err, errClosing) {
		return ErrClosed
	}
	if err != nil && !errors.Is(err, ErrClosed) {
		d.fail(err)
	}
	return err
}

// beginManual waits until no compaction runs, keeps others from starting, and
// begins a compaction of [lo, hi] if there is anything to do.
func (d *DB) beginManual(lo, hi []byte) (*compaction, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.compactions.manual++
	for d.compactions.running > 0 && d.failure == nil && !d.closing {
		d.progress.Wait()
	}
	if d.failure != nil {
		return nil, d.failure
	}
	if d.closing {
		return nil, ErrClosed
	}
	c := d.pickRange(d.current, lo, hi)
	if c != nil {
		d.begin(c)
	}
	return c, nil
}

// pickRange returns a compaction of all tables that may hold keys of [lo, hi] into
// the last level, or nil if that would change nothing.
func (d *DB) pickRange(v *version, lo, hi []byte) *compaction {
	c := &compaction{reason: "asked for", level: lastLevel, output: lastLevel, rewriteAll: true}
	end := hi
	if hi != nil {
		end = append(slices.Clip(hi), 0)
	}
	// The tables reach beyond the range, and others overlap them there: widen
	// until nothing comes in any more.
	for n := -1; n != len(c.tables()); {
		n = len(c.tables())
		for level := range v.levels {
			c.inputs[level] = overlappingIn(&v.levels[level], level, lo, end)
		}
		if tables := c.tables(); len(tables) > 0 {
			s := spanOf(tables)
			lo, end = s.lo, s.hi
		}
	}
	for level, inputs := range slices.Backward(c.inputs[:]) {
		if len(inputs) > 0 {
			c.level = level
		}
	}
	if len(c.tables()) == 0 || c.level == lastLevel && !slices.ContainsFunc(c.tables(), d.outdated) {
		return nil
	}
	return c
}

// overlappingIn returns the tables of a level that may hold keys of [lo, hi).
func overlappingIn(l *level, n int, lo, hi []byte) []*table {
	if n > 0 {
		return l.overlapping(lo, hi)
	}
	var tables []*table
	for _, t := range l.tables {
		if t.Overlaps(lo, hi) {
			tables = append(tables, t)
		}
	}
	return tables
}

// outdated reports whether rewriting a table of the last level would change it:
// it has tombstones, or a filter of another policy than new files get.
func (d *DB) outdated(t *table) bool {
	if t.Deletes > 0 || t.RangeDeletes > 0 {
		return true
	}
	r, err := d.openTable(t)
	if err != nil {
		return true
	}
	want := d.filterFor(d.current, lastLevel, 0, nil)
	p := r.Properties()
	if want.Name() == noFilter.Name() {
		return p.FilterFamily != ""
	}
	prefix := ""
	if d.opts.Prefix != nil {
		prefix = d.opts.Prefix.Name()
	}
	return p.Entries > 0 && (p.FilterPolicy != want.String() || p.FilterPrefix != prefix || p.PrefixOnly != d.opts.PrefixOnly)
}

package remote

import (
	"errors"
	"slices"
)

// removeTables deletes sorted files that were given up so long ago that all readers have noticed, and those of earlier
// writers that are in no list, but for those that a checkpoint names. Files of other branches it never deletes.
//
// The listing of the checkpoints begins when a list without the files has been published, and the grace is over.
// Whoever makes a checkpoint sees, when it is there, that the newest list needs all of its files: so each list that
// does without one is published later, and the listing shows the checkpoint. See docs/adr/0024 for the rest.
func (c *collector) removeTables(due []removedTable) error {
	<-c.turn
	defer func() { c.turn <- struct{}{} }()
	c.mu.Lock()
	due, c.pinned = append(c.pinned, due...), nil
	c.mu.Unlock()
	if len(due) == 0 && c.orphans > 0 {
		return nil
	}
	if c.orphans%removalsPerSearch == 0 {
		orphans, err := c.findOrphans(due)
		if err != nil {
			c.keep(due)
			return err
		}
		due = append(due, orphans...) // what cannot be deleted now is kept
	}
	c.orphans++
	foreign := c.foreign() // before the look: no checkpoint that is made later has a file that was given up before
	if err := c.pins.look(c.ctx); err != nil {
		c.keep(due)
		return err
	}
	var errs []error
	for _, t := range due {
		if t.site != c.w.author.site {
			continue // its branch deletes it, when it sees that this one does not need it
		}
		if c.pins.name(t.num) {
			c.keep([]removedTable{t})
			continue
		}
		if err := c.w.f.sortedFiles().Remove(c.ctx, t.object(t.num)); err != nil {
			errs = append(errs, err)
			c.keep([]removedTable{t}) // for the next time: to ask again at once would cost requests without end
		}
	}
	return errors.Join(append(errs, c.unpin(foreign))...)
}

// removalsPerSearch is how many removals there are for one that looks for orphans: a writer that was fenced may still
// be uploading a file, and a request that was delayed may put one there, when the first has looked.
const removalsPerSearch = 64

// keep hands in again what could not be deleted, for the next time that there is something to collect.
func (c *collector) keep(tables []removedTable) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pinned = append(c.pinned, tables...)
}

// recheck has the collector look again whether checkpoints need what they did.
func (c *collector) recheck() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pinned) > 0 {
		c.arm()
	}
}

// findOrphans returns the sorted files of earlier writers that are not in the list of files: those of flushes and
// compactions that came to nothing, and those that they had no time to delete. It is a LIST for a thousand files.
func (c *collector) findOrphans(due []removedTable) (found []removedTable, err error) {
	f, by := c.w.f, c.w.author
	for o, err := range f.sortedFiles().List(c.ctx, by.site.tables()) {
		if err != nil {
			return nil, err
		}
		num, author, ok := by.site.parseTable(o.Key)
		if !ok || author.epoch >= by.epoch {
			continue
		}
		f.mu.Lock()
		t, listed := f.list.tables[num]
		f.mu.Unlock()
		orphan := removedTable{table: table{author: author, size: o.Size}, num: num}
		same := func(t removedTable) bool { return t.num == num && t.author == author }
		if listed && t.author == author || c.waits(same) || slices.ContainsFunc(due, same) {
			continue
		}
		found = append(found, orphan)
	}
	return found, nil
}

// waits reports whether a sorted file was handed in and not deleted yet.
func (c *collector) waits(is func(removedTable) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.tables, is)
}

// unpin gives up what the branch has kept of others, if neither it nor what was made from it needs their files any
// more. foreign says whether it did when the checkpoints were looked at: a file that was given up since may be in one
// that was made since.
func (c *collector) unpin(foreign bool) error {
	if len(c.pins.own) == 0 || foreign || c.pins.derived() {
		return nil
	}
	return c.pins.release(c.ctx)
}

// foreign reports whether files of other branches are in the list of files, or were a moment ago.
func (c *collector) foreign() bool {
	other := func(t table) bool { return t.site != c.w.author.site }
	if c.waits(func(t removedTable) bool { return other(t.table) }) {
		return true
	}
	f := c.w.f
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.list.tables {
		if other(t) {
			return true
		}
	}
	return false
}

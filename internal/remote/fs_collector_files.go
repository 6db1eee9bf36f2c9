package remote

import (
	"errors"
	"slices"

	"github.com/siftkv/siftkv/internal/remote/branch"
	"github.com/siftkv/siftkv/internal/remote/filelist"
)

// removeFiles deletes removed sorted files and blob files after the grace, and files of earlier writers that no list
// has. It keeps those that a checkpoint names, and never deletes files of other branches.
//
// The listing of the checkpoints begins after a list without the files was published, and the grace has passed.
// CreateCheckpoint puts the checkpoint, and then sees that the newest list needs all of its files. So each list that
// omits one is published later, and the listing shows the checkpoint. See docs/adr/0024 for the rest.
func (c *collector) removeFiles(due []removedFile) error {
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
	foreign := c.foreign() // before the update: a checkpoint that is made later has no file that was removed before
	if err := c.pins.Update(c.ctx); err != nil {
		c.keep(due)
		return err
	}
	var errs []error
	for _, t := range due {
		if t.Prefix != c.w.author.Prefix {
			continue // its branch deletes it, when it sees that this one does not need it
		}
		if c.pins.Has(t.Num) {
			c.keep([]removedFile{t})
			continue
		}
		if err := c.w.f.storedFiles().Remove(c.ctx, t.Key(t.Num)); err != nil {
			errs = append(errs, err)
			c.noteFailure()
			c.keep([]removedFile{t}) // for the next time: to ask again at once would cost requests without end
		}
	}
	if !foreign {
		errs = append(errs, c.pins.ReleaseOwn(c.ctx))
	}
	return errors.Join(errs...)
}

// One removal in removalsPerSearch looks for orphans. The first look may miss some: a fenced writer may still be
// uploading a file, or a delayed request may put one.
const removalsPerSearch = 64

// keep hands in again what could not be deleted, for the next time that there is something to collect.
func (c *collector) keep(files []removedFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pinned = append(c.pinned, files...)
}

func (c *collector) noteFailure() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed++
}

// recheck has the collector look again whether checkpoints need what they did.
func (c *collector) recheck() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pinned) > 0 {
		c.arm()
	}
}

// findOrphans returns the sorted files and blob files of earlier writers that are not in the list of files: output of
// failed flushes and compactions, and files that were not deleted in time.
func (c *collector) findOrphans(due []removedFile) (orphaned []removedFile, err error) {
	f, by := c.w.f, c.w.author
	found, err := branch.Orphans(c.ctx, f.o.Objects, by.Prefix, by.Epoch, func(num uint64) filelist.File {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.list.Files[num]
	})
	for _, orphan := range found {
		same := func(f removedFile) bool {
			return f.Num == orphan.Num && f.WriterID == orphan.WriterID && f.Kind == orphan.Kind
		}
		if !c.waits(same) && !slices.ContainsFunc(due, same) {
			orphaned = append(orphaned, removedFile{NumberedFile: orphan})
		}
	}
	return orphaned, err
}

// waits reports whether a file was handed in and not deleted yet.
func (c *collector) waits(is func(removedFile) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.files, is)
}

// foreign reports whether files of other branches are in the list of files, or were a moment ago.
func (c *collector) foreign() bool {
	other := func(f filelist.File) bool { return f.Prefix != c.w.author.Prefix }
	if c.waits(func(f removedFile) bool { return other(f.File) }) {
		return true
	}
	f := c.w.f
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.list.Files {
		if other(t) {
			return true
		}
	}
	return false
}

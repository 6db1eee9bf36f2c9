package remote

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/siftkv/siftkv/internal/remote/branch"
	"github.com/siftkv/siftkv/internal/remote/filelist"
)

// A collector deletes what a writer's list of files does not need any more, after a grace for readers: removed sorted
// files and blob files, and old entries. It keeps the entries since the last list of files, those that its logs need,
// and those that the list is an edit of.
//
// It deletes a file only after a published list omits it, and a file that no list has only if its epoch is earlier:
// that writer can publish no more. So no list needs a deleted object, now or later, even if this writer was fenced and
// has not noticed.
//
// When the first list is published, it deletes what earlier writers have left behind (see collectInherited).
//
// It sends no requests while nothing changes.
type collector struct {
	w        *fsWriter
	ctx      context.Context // ends with the collector
	end      context.CancelFunc
	grace    time.Duration
	done     sync.WaitGroup
	inherits bool // earlier writers may have left something behind

	turn    chan struct{} // has a token unless files are being removed; its owner owns pins and orphans
	pins    *branch.Retained
	orphans uint64 // removals since those of earlier writers were first looked for, that one too

	mu        sync.Mutex
	files     []removedFile // oldest first
	pinned    []removedFile // that checkpoints need or may need, or that could not be deleted
	lists     []publication // oldest first
	timer     *time.Timer
	armed     bool          // the timer runs, or what it calls
	again     bool          // there is more for the next time
	inherited chan struct{} // closed when what earlier writers have left behind was deleted; nil: that has not begun
	stopped   bool
	failed    uint64 // deletions, ever
}

// A publication is that of a list of files.
type publication struct {
	slot     uint64
	logStart uint64   // in the list
	chain    []uint64 // the slots that the list is read from
	at       time.Time
}

// A removedFile is a sorted file or a blob file.
type removedFile struct {
	filelist.NumberedFile
	at time.Time
}

func (c *collector) start(w *fsWriter) {
	c.w, c.grace = w, w.f.o.Grace
	c.pins, c.turn = branch.NewRetained(w.f.branches, w.author.Prefix), make(chan struct{}, 1)
	c.turn <- struct{}{}
	c.ctx, c.end = context.WithCancel(w.f.ctx)
}

// closingPause is how long stop waits for what is deleted of earlier writers: a writer that lives shortly deletes
// something too.
const closingPause = 2 * time.Second

// stop ends what is under way. What was not deleted is found by the next writer.
func (c *collector) stop() {
	c.mu.Lock()
	c.stopped = true
	if c.timer != nil && c.timer.Stop() {
		c.done.Done()
	}
	inherited := c.inherited
	c.mu.Unlock()
	if inherited != nil {
		pause := time.NewTimer(closingPause)
		select {
		case <-inherited:
		case <-pause.C:
		case <-c.ctx.Done():
		}
		pause.Stop()
	}
	c.end()
	c.done.Wait()
}

// file hands in a sorted file or a blob file that the next list and later ones omit.
func (c *collector) file(num uint64, f filelist.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files = append(c.files, removedFile{filelist.NumberedFile{File: f, Num: num}, time.Now()})
	c.arm()
}

// published says that a list was published, which is read from the slots of a chain.
func (c *collector) published(chain []uint64, logStart uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lists = append(c.lists, publication{chain[len(chain)-1], logStart, chain, time.Now()})
	c.arm()
	if c.inherits && !c.stopped {
		c.inherits, c.inherited = false, make(chan struct{})
		c.done.Go(c.collectInherited)
	}
}

// arm has the collector look after the grace. The caller holds mu.
func (c *collector) arm() {
	if c.armed || c.stopped {
		c.again = true
		return
	}
	c.armed, c.again = true, false
	c.done.Add(1)
	c.timer = time.AfterFunc(c.grace, func() {
		defer c.done.Done()
		c.warn(c.collect(time.Now().Add(-c.grace)))
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.armed = false; c.again {
			c.arm()
		}
	})
}

// warn logs why objects stay.
func (c *collector) warn(err error) {
	if err != nil && c.ctx.Err() == nil {
		c.w.f.o.Log.Warn("objects that are not needed could not be deleted", slog.Any("error", err))
	}
}

// collectInherited deletes what earlier writers have left behind.
func (c *collector) collectInherited() {
	defer close(c.inherited)
	select {
	case <-c.turn:
	case <-c.ctx.Done():
		return
	}
	defer func() { c.turn <- struct{}{} }()
	f := c.w.f
	got, err := c.pins.Collect(c.ctx, f.seq, time.Time{}, c.grace, f.storedFiles().Remove)
	c.warn(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed += uint64(got.Failed)
}

// collect deletes what was removed or replaced before a moment.
func (c *collector) collect(before time.Time) error {
	c.mu.Lock()
	var due []removedFile
	for len(c.files) > 0 && !c.files[0].at.After(before) {
		due, c.files = append(due, c.files[0]), c.files[1:]
	}
	var last publication // which readers have had time to notice
	for len(c.lists) > 0 && !c.lists[0].at.After(before) {
		last, c.lists = c.lists[0], c.lists[1:]
	}
	c.again = len(c.files) > 0 || len(c.lists) > 0 // the objects that these dropped are not due yet
	c.mu.Unlock()

	errs := []error{c.removeFiles(due)}
	f := c.w.f
	var err error
	if last.slot > 0 {
		if _, err = f.seq.Trim(c.ctx, min(last.slot, last.logStart), last.slot, before, last.chain...); err != nil {
			errs = append(errs, err)
			c.mu.Lock()
			c.failed++
			c.lists = append([]publication{last}, c.lists...)
			c.mu.Unlock()
		}
	}
	return errors.Join(errs...)
}

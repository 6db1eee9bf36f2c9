package kv

import (
	"errors"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
)

// A cleaner closes tables and removes files that nobody needs, in a goroutine of its own,
// so that a reader who happens to drop the last reference does not pay for it. It is only
// handed tables whose last version is gone, and logs and manifests that a durable edit has
// replaced. It holds back what readers in other processes may need.
type cleaner struct {
	mu      sync.Mutex
	wake    sync.Cond
	tables  []*version.Table
	files   []string
	held    heldFiles
	recheck bool        // held files are looked at again
	timer   *time.Timer // sets recheck; nil: not armed
	busy    bool
	stopped bool // what is handed in is closed, but nothing removed
	done    chan struct{}
}

func (c *cleaner) start(d *DB) {
	c.wake.L = &c.mu
	c.done = make(chan struct{})
	go c.loop(d)
}

// change changes what the goroutine has to do, and wakes it.
func (c *cleaner) change(f func()) {
	c.mu.Lock()
	f()
	c.mu.Unlock()
	c.wake.Broadcast()
}

// table hands in a table without references. It never blocks for long.
func (c *cleaner) table(t *version.Table) { c.change(func() { c.tables = append(c.tables, t) }) }

// file hands in a file to remove.
func (c *cleaner) file(name string) { c.change(func() { c.files = append(c.files, name) }) }

// lookAgain has held files looked at again.
func (c *cleaner) lookAgain() { c.change(func() { c.recheck = true }) }

func (c *cleaner) loop(d *DB) {
	defer close(c.done)
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for !c.stopped && !c.recheck && len(c.tables)+len(c.files) == 0 {
			c.wake.Wait()
		}
		if c.stopped {
			return
		}
		tables, files := c.tables, c.files
		c.tables, c.files, c.busy = nil, nil, true
		if c.recheck {
			c.recheck, c.timer = false, nil
		}
		c.mu.Unlock()
		c.clean(d, tables, files)
		c.mu.Lock()
		c.busy = false
		if len(c.held.files) > 0 && c.timer == nil && !c.stopped {
			c.timer = time.AfterFunc(heldRecheck, c.lookAgain)
		}
		c.wake.Broadcast()
	}
}

// clean closes tables and removes files.
func (c *cleaner) clean(d *DB, tables []*version.Table, files []string) {
	for _, t := range tables {
		name := d.path(manifest.FileTable, t.Num)
		c.report(d, name, d.tables.Close(t))
		if t.Obsolete && !d.opts.ReadOnly {
			files = append(files, name)
		}
	}
	for _, f := range c.held.removable(d, files) {
		c.report(d, f, d.fs.Remove(f))
	}
	if err := d.follower.publishPosition(); err != nil {
		d.log.Warn("the writer keeps more files than this reader needs", "dir", d.dir, "error", err)
	}
}

// report logs a failure: the file stays, and the next Open tries again.
func (c *cleaner) report(d *DB, name string, err error) {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.log.Warn("an obsolete file could not be removed", "file", name, "error", err)
	}
}

// wait returns when everything handed in so far has been done.
func (c *cleaner) wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.stopped && (c.busy || len(c.tables)+len(c.files) > 0) {
		c.wake.Wait()
	}
}

// stop ends the goroutine. Tables that are left, or that open iterators give
// back later, are closed by drain; their files stay for the next Open.
func (c *cleaner) stop() {
	c.change(func() {
		c.stopped = true
		if c.timer != nil {
			c.timer.Stop()
		}
	})
	<-c.done
}

// drain closes the tables that were handed in after stop. Before it, they are the
// goroutine's.
func (c *cleaner) drain(d *DB) error {
	c.mu.Lock()
	var tables []*version.Table
	if c.stopped {
		tables, c.tables = c.tables, nil
	}
	c.mu.Unlock()
	var errs []error
	for _, t := range tables {
		errs = append(errs, d.tables.Close(t))
	}
	return errors.Join(errs...)
}

// heldFiles are obsolete files that a reader in another process may still need.
// A file is given back when every reader has gone on to a position of the store's
// history at which the file was obsolete already.
//
// A reader that registers too late to be seen here registers before it reads CURRENT, and
// so does not come upon what an edit of the manifest has given up already.
type heldFiles struct {
	files []heldFile // touched by the cleaner's goroutine alone
	count atomic.Int64
}

type heldFile struct {
	name string
	at   manifest.Position // the file was obsolete here
}

// heldRecheck is how often a store asks whether readers still need files, when
// nothing else leads it to ask.
const heldRecheck = 10 * time.Second

// removable takes in obsolete files, and returns those that nobody needs.
func (h *heldFiles) removable(d *DB, files []string) (free []string) {
	at := d.position()
	for _, f := range files {
		h.files = append(h.files, heldFile{f, at})
	}
	if len(h.files) == 0 {
		return nil
	}
	n, oldest, err := manifest.Readers(d.fs, d.dir)
	if err != nil {
		d.log.Warn("obsolete files stay: whether readers need them is not known", "dir", d.dir, "error", err)
		return nil
	}
	h.files = slices.DeleteFunc(h.files, func(f heldFile) bool {
		unneeded := n == 0 || !oldest.Before(f.at)
		if unneeded {
			free = append(free, f.name)
		}
		return unneeded
	})
	h.count.Store(int64(len(h.files)))
	return free
}

// position returns where the store is in its history.
func (d *DB) position() manifest.Position {
	d.manifestMu.Lock()
	defer d.manifestMu.Unlock()
	if d.manifest == nil {
		return manifest.Position{}
	}
	return d.manifest.Position()
}

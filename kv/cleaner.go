package kv

import (
	"errors"
	"io/fs"
	"sync"

	"github.com/siftkv/siftkv/internal/manifest"
)

// The cleaner closes tables and removes files that nobody needs, in a goroutine
// of its own, so that the reader who happens to drop the last reference does not
// pay for it.
//
// It cannot remove a live file: it is only ever handed tables whose last version
// is gone, and logs and manifests that a durable edit has replaced.
type cleaner struct {
	mu      sync.Mutex
	wake    sync.Cond
	tables  []*table
	files   []string
	busy    bool
	stopped bool // what is handed in is closed, but nothing removed
	done    chan struct{}
}

func (c *cleaner) start(d *DB) {
	c.wake.L = &c.mu
	c.done = make(chan struct{})
	go c.run(d)
}

// table hands in a table without references. It never blocks for long.
func (c *cleaner) table(t *table) {
	c.mu.Lock()
	c.tables = append(c.tables, t)
	c.mu.Unlock()
	c.wake.Broadcast()
}

// file hands in a file to remove.
func (c *cleaner) file(name string) {
	c.mu.Lock()
	c.files = append(c.files, name)
	c.mu.Unlock()
	c.wake.Broadcast()
}

func (c *cleaner) run(d *DB) {
	defer close(c.done)
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for !c.stopped && len(c.tables)+len(c.files) == 0 {
			c.wake.Wait()
		}
		if c.stopped {
			return
		}
		tables, files := c.tables, c.files
		c.tables, c.files, c.busy = nil, nil, true
		c.mu.Unlock()
		for _, t := range tables {
			c.report(d, manifest.FileName(manifest.FileTable, t.Num), d.closeTable(t, t.obsolete && !d.opts.ReadOnly))
		}
		for _, f := range files {
			c.report(d, f, d.fs.Remove(f))
		}
		c.mu.Lock()
		c.busy = false
		c.wake.Broadcast()
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
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	c.wake.Broadcast()
	<-c.done
}

// drain closes the tables that were handed in after stop.
func (c *cleaner) drain(d *DB) error {
	c.mu.Lock()
	tables := c.tables
	c.tables = nil
	stopped := c.stopped
	c.mu.Unlock()
	if !stopped {
		return nil
	}
	var errs []error
	for _, t := range tables {
		errs = append(errs, d.closeTable(t, false))
	}
	return errors.Join(errs...)
}

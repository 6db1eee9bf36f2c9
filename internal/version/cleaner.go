package version

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Cleaner closes unused tables and blob files and removes files, in a goroutine of its own, so that the reader that
// drops the last reference does not pay for it. It closes only versions without references, and gets logs and manifests
// that a durable edit has replaced. It keeps files that readers in other processes may need.
type Cleaner struct {
	Tables   *tablecache.Cache
	Blobs    *BlobCache // nil: there are no blob files
	History  *History
	FS       vfs.FS
	Dir      string
	Log      *slog.Logger
	ReadOnly bool                     // nothing is removed
	Position func() manifest.Position // where the store is in its history
	Keeps    func(path string) bool   // reports whether a slot needs a file; nil: there are no slots
	Cleaned  func()                   // called when what was handed in is done

	mu       sync.Mutex
	wake     sync.Cond
	versions []*Version
	files    []unneededFile
	blobs    []unlisted
	held     []heldFile // the goroutine's alone
	holds    atomic.Int64
	recheck  bool        // held files are looked at again
	timer    *time.Timer // sets recheck; nil: not armed
	busy     bool
	stopped  bool // what is handed in is closed, but nothing removed
	done     chan struct{}
	draining sync.Mutex // held to retire versions after the goroutine has ended
}

// Start starts the goroutine.
func (c *Cleaner) Start() {
	c.wake.L = &c.mu
	c.done = make(chan struct{})
	go c.loop()
}

// change changes what the goroutine has to do, and wakes it.
func (c *Cleaner) change(f func()) {
	c.mu.Lock()
	f()
	c.mu.Unlock()
	c.wake.Broadcast()
}

// Unref releases a reference of a version, in O(1). The tables that no version lists any more are closed then, and
// removed if they are obsolete.
func (c *Cleaner) Unref(v *Version) {
	if v.Unref() {
		c.change(func() { c.versions = append(c.versions, v) })
	}
}

// Release is Unref for a reader, which may be the last after Stop: then it closes the tables itself.
func (c *Cleaner) Release(v *Version) {
	c.Unref(v)
	c.mu.Lock()
	stopped := c.stopped
	c.mu.Unlock()
	if !stopped {
		return
	}
	if err := c.Drain(); err != nil {
		c.Log.Warn("a table could not be closed", "error", err)
	}
}

// File hands in a file to remove.
func (c *Cleaner) File(name string) {
	c.change(func() { c.files = append(c.files, unneededFile{name: name}) })
}

// Sweep hands in what a crash has left in the directory: files of the store's own kinds that v does not list, logs
// before logNum, and manifests other than the one with manifestNum. Others' files stay. A half-written file it removes
// itself, as its name is written again: the goroutine might remove the new one. It must return before the store makes
// new files.
func (c *Cleaner) Sweep(v *Version, logNum, manifestNum uint64) {
	names, err := c.FS.List(c.Dir)
	if err != nil {
		c.Log.Warn("obsolete files could not be listed", "dir", c.Dir, "error", err)
		return
	}
	for _, name := range names {
		obsolete := false
		switch kind, num := manifest.ParseFileName(name); kind {
		case manifest.FileTable:
			obsolete = !v.Has(num)
		case manifest.FileBlob:
			obsolete = v.Blob(num) == nil
		case manifest.FileWAL:
			obsolete = num < logNum
		case manifest.FileManifest:
			obsolete = num != manifestNum
		case manifest.FileRestore, manifest.FileIngest, manifest.FileKept:
			obsolete = true
		case manifest.FileTemp:
			if err := c.FS.Remove(filepath.Join(c.Dir, name)); err != nil {
				c.Log.Warn("a half-written file could not be removed", "file", filepath.Join(c.Dir, name), "error", err)
			}
		}
		if obsolete {
			c.File(filepath.Join(c.Dir, name))
		}
	}
}

// Blob hands in a blob file that no version lists, to be closed, and removed if remove is set.
func (c *Cleaner) Blob(b *Blob, remove bool) {
	c.change(func() { c.blobs = append(c.blobs, unlisted{b, remove}) })
}

// LookAgain has held files looked at again.
func (c *Cleaner) LookAgain() { c.change(func() { c.recheck = true }) }

func (c *Cleaner) loop() {
	defer close(c.done)
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for !c.stopped && !c.recheck && len(c.versions)+len(c.files)+len(c.blobs) == 0 {
			c.wake.Wait()
		}
		if c.stopped {
			return
		}
		versions, files, blobs := c.versions, c.files, c.blobs
		c.versions, c.files, c.blobs, c.busy = nil, nil, nil, true
		if c.recheck && c.timer != nil {
			c.timer.Stop()
			c.timer = nil
		}
		c.recheck = false
		c.mu.Unlock()
		for _, b := range blobs {
			files = c.closed(files, unneededFile{name: c.Blobs.Path(b.Num)}, b.Close(), b.remove)
		}
		c.clean(versions, files)
		c.mu.Lock()
		c.busy = false
		if len(c.held) > 0 && c.timer == nil && !c.stopped {
			c.timer = time.AfterFunc(heldRecheck, c.LookAgain)
		}
		c.wake.Broadcast()
	}
}

// clean closes the tables and blob files that only these versions needed, and removes files.
func (c *Cleaner) clean(versions []*Version, files []unneededFile) {
	for _, v := range versions {
		unused := c.History.retire(v)
		for _, t := range unused.tables {
			files = c.closed(files, unneededFile{c.Tables.Path(t.Num), t.Size}, c.Tables.Close(&t.Entry), t.obsolete)
		}
		for _, b := range unused.blobs {
			files = c.closed(files, unneededFile{c.Blobs.Path(b.Num), b.Size}, b.Close(), b.obsolete)
		}
	}
	for _, f := range c.removable(files) {
		c.report(f.name, c.FS.Remove(f.name))
		c.History.obsolete.Add(-f.size)
	}
	c.Cleaned()
}

// closed adds an unused file to those to remove if it is obsolete. It reports err, the result of closing it.
func (c *Cleaner) closed(files []unneededFile, f unneededFile, err error, obsolete bool) []unneededFile {
	c.report(f.name, err)
	if obsolete && !c.ReadOnly {
		files = append(files, f)
	}
	return files
}

// report logs a failure: the file stays, and the next Open tries again.
func (c *Cleaner) report(name string, err error) {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Log.Warn("an obsolete file could not be removed", "file", name, "error", err)
	}
}

// Wait returns when everything that was handed in before is done.
func (c *Cleaner) Wait() { _ = c.WaitContext(context.Background()) }

// WaitContext is Wait for a caller that waits no longer than ctx lasts. The error then is base.ErrContextEnded.
func (c *Cleaner) WaitContext(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { c.change(func() {}) })()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.stopped && (c.busy || len(c.versions)+len(c.files)+len(c.blobs) > 0) {
		if ctx.Err() != nil {
			return base.ErrContextEnded
		}
		c.wake.Wait()
	}
	return nil
}

// Stop ends the goroutine. Tables of versions that are left, or that open iterators give
// back later, are closed by Drain; their files stay for the next Open.
func (c *Cleaner) Stop() {
	c.change(func() {
		c.stopped = true
		if c.timer != nil {
			c.timer.Stop()
		}
	})
	<-c.done
}

// Drain closes the tables of the versions that were handed in after Stop. Before it, they are the goroutine's.
func (c *Cleaner) Drain() error {
	c.draining.Lock()
	defer c.draining.Unlock()
	c.mu.Lock()
	var versions []*Version
	var blobs []unlisted
	if c.stopped {
		versions, c.versions = c.versions, nil
		blobs, c.blobs = c.blobs, nil
	}
	c.mu.Unlock()
	var errs []error
	for _, b := range blobs {
		errs = append(errs, b.Close())
	}
	for _, v := range versions {
		unused := c.History.retire(v)
		for _, t := range unused.tables {
			errs = append(errs, c.Tables.Close(&t.Entry))
		}
		for _, b := range unused.blobs {
			errs = append(errs, b.Close())
		}
	}
	return errors.Join(errs...)
}

// An unlisted is a blob file that no version lists.
type unlisted struct {
	*Blob
	remove bool
}

// An unneededFile is a file to remove.
type unneededFile struct {
	name string
	size int64 // what the History counts of it, in bytes
}

// A heldFile is an obsolete file that a reader in another process may still need. It goes when every reader has gone on
// to a position of the store's history at which the file was obsolete already. A reader that registers too late to be
// seen here registers before it reads CURRENT, and so sees no file that an edit of the manifest has deleted.
type heldFile struct {
	unneededFile
	at     manifest.Position // the file was obsolete here
	warned bool              // that it cannot be renamed
}

// Held returns how many files are held back.
func (c *Cleaner) Held() int { return int(c.holds.Load()) }

// heldRecheck is how often a store asks whether readers still need files, when nothing else leads it to ask.
const heldRecheck = 10 * time.Second

// removable adds obsolete files, and returns those of all that no reader needs.
func (c *Cleaner) removable(files []unneededFile) (free []unneededFile) {
	at := c.Position()
	for _, f := range files {
		c.held = append(c.held, heldFile{unneededFile: f, at: at})
	}
	if len(c.held) == 0 {
		return nil
	}
	n, oldest, err := manifest.Readers(c.FS, c.Dir)
	if err != nil {
		c.holds.Store(int64(len(c.held)))
		c.Log.Warn("obsolete files stay: whether readers need them is not known", "dir", c.Dir, "error", err)
		return nil
	}
	needed := c.held[:0]
	for _, f := range c.held {
		switch {
		case n > 0 && oldest.Before(f.at):
			needed = append(needed, f)
		case c.Keeps != nil && c.Keeps(f.name):
			c.keep(&f)
			needed = append(needed, f)
		default:
			free = append(free, f.unneededFile)
		}
	}
	clear(c.held[len(needed):])
	c.held = needed
	c.holds.Store(int64(len(c.held)))
	return free
}

// keep gives an obsolete file that a slot needs the name of such files. So a repair that has lost the manifest does not
// take the file for one of the store. If that fails the file keeps its name until the next time.
func (c *Cleaner) keep(f *heldFile) {
	kind, num := manifest.ParseFileName(filepath.Base(f.name))
	if kind == manifest.FileKept {
		return
	}
	kept := manifest.Path(c.Dir, manifest.FileKept, num)
	switch err := c.FS.Rename(f.name, kept); {
	case err == nil:
		f.name = kept
	case !f.warned && !errors.Is(err, fs.ErrNotExist):
		f.warned = true
		c.Log.Warn("a file that only slots need could not be renamed", "file", f.name, "to", kept, "error", err)
	}
}

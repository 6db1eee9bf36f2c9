package diskcache

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/vfs"
)

// Options are options of a [Cache]. The zero value has the defaults, except for Capacity.
type Options struct {
	// Capacity bounds the bytes on disk, with what the file system needs for a file: 4 KiB. At least 32 pages.
	Capacity int64

	// PageSize is the unit of the cache, in bytes, and the least that a read requests of the store. A request for 64
	// KiB costs what one for a block does, takes a millisecond more, and brings the neighbours of the block. 4 KiB to 1
	// MiB. Default: 64 KiB.
	PageSize int

	// PassSize: reads of at least this many bytes are passes over files. They use cached pages and add none: a
	// compaction would evict everything else. Default: 128 KiB.
	PassSize int

	// QueueBytes bounds the memory for pages that wait to be written. Further ones are dropped. Default: 16 MiB.
	QueueBytes int64

	Log *slog.Logger // nil: none
}

const (
	lockName        = "LOCK"
	fileOverhead    = 4 << 10
	segmentsAtLeast = 16       // of a full cache
	largestSegment  = 32 << 20 // as much is evicted at a time
	openSegments    = 64       // files open for reading
	retryAfter      = time.Minute
)

// A Cache keeps pieces of objects in a directory, across restarts. Objects are never changed, so it is always right. It
// never causes an error: if the directory was deleted, the disk is full, or bytes are damaged, it just lacks pages. All
// methods are safe for concurrent use. One process at a time has the directory; the cache of another keeps nothing (see
// Err).
//
// Pages are written one after the other into large files, by a goroutine that no read waits for. Space is made by
// removing the oldest file; pages in it that were used since they were written are written again, up to half of the
// file. In memory, a page costs about 50 bytes.
//
// A nil Cache keeps nothing.
type Cache struct {
	fs    vfs.FS
	dir   string
	o     Options
	log   *slog.Logger
	limit *vfs.ReadLimit
	err   error // why it keeps nothing
	lock  io.Closer

	mu      sync.Mutex
	pages   map[uint64]place // by hash of the key
	files   map[uint32]*segment
	pending map[uint64]*pendingPage // that are not on disk yet
	flights map[uint64]*flight      // pages that are being fetched
	queue   []*pendingPage
	queued  int64 // bytes of pending pages
	loaded  bool  // what the directory had can be read
	closed  bool
	work    *sync.Cond // of mu; the queue has grown, or the cache was closed
	idle    *sync.Cond // of mu; the queue has become shorter
	done    chan struct{}
	ended   chan struct{} // closed by the first Close

	writer writer // of the goroutine's alone
	stats  struct {
		hits, misses, hitBytes, written, dropped, evicted, damaged, failed, size atomic.Int64
	}
}

// A place is where a page is.
type place struct {
	segment, position uint32
	length            uint32 // with header and name
	used              bool   // since it was written
}

// A pendingPage is a page that waits to be written.
type pendingPage struct {
	key  pageKey
	hash uint64
	data []byte
	lost bool // it must be forgotten; guarded by the cache's lock
}

// Open opens the cache in a directory, which is made if there is none. It returns at once: what the directory
// has is found in the background. It never fails, but may keep nothing: Err says why, and the log too.
func Open(fs vfs.FS, dir string, o Options) *Cache {
	o.PageSize = min(max(cmp.Or(o.PageSize, 64<<10), 4<<10), maxPageSize)
	o.PassSize = cmp.Or(o.PassSize, 128<<10)
	o.QueueBytes = cmp.Or(o.QueueBytes, 16<<20)
	c := &Cache{fs: fs, dir: dir, o: o, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)),
		limit: vfs.NewReadLimit(openSegments), pages: map[uint64]place{}, files: map[uint32]*segment{},
		pending: map[uint64]*pendingPage{}, flights: map[uint64]*flight{},
		done: make(chan struct{}), ended: make(chan struct{})}
	c.work, c.idle = sync.NewCond(&c.mu), sync.NewCond(&c.mu)
	c.writer = writer{c: c, most: min(largestSegment, o.Capacity/segmentsAtLeast)}
	if c.err = c.begin(); c.err != nil {
		c.log.Warn("nothing is cached on disk", "dir", dir, "error", c.err)
		close(c.done)
		return c
	}
	go c.writer.run()
	return c
}

// begin takes the directory.
func (c *Cache) begin() error {
	if c.o.Capacity < 2*segmentsAtLeast*int64(c.o.PageSize) {
		return fmt.Errorf("a capacity of %d bytes is not enough for pages of %d", c.o.Capacity, c.o.PageSize)
	}
	if err := c.fs.MkdirAll(c.dir); err != nil {
		return err
	}
	var err error
	c.lock, err = c.fs.Lock(filepath.Join(c.dir, lockName), vfs.Exclusive)
	return err
}

// idles reports whether the cache keeps nothing.
func (c *Cache) idles() bool { return c == nil || c.err != nil }

// Flush waits until what the directory had was found, and all pages that were read have been written or dropped.
func (c *Cache) Flush() {
	if c.idles() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for (!c.loaded || c.queued > 0) && !c.closed {
		c.idle.Wait()
	}
}

// Close ends the writing, after the current page, and releases the directory: waiting pages are lost. Later reads
// bypass the cache. A second Close waits for the first, so that the directory is free after each of them.
func (c *Cache) Close() (err error) {
	if c.idles() {
		return nil
	}
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	c.work.Broadcast()
	c.idle.Broadcast()
	c.mu.Unlock()
	if !first {
		<-c.ended
		return nil
	}
	defer close(c.ended)
	<-c.done
	for _, s := range c.writer.segments {
		err = errors.Join(err, s.file.Close())
	}
	return errors.Join(err, c.lock.Close())
}

// Metrics count what a cache did since it was opened, and say what it has.
type Metrics struct {
	Hits     int64 // reads that needed no request
	Misses   int64 // that did
	HitBytes int64 // of hits
	Written  int64 // pages
	Dropped  int64 // pages that were not written, as there were too many at a time
	Evicted  int64 // pages
	Damaged  int64 // pages and files that were not what they should be
	Failed   int64 // operations of the file system
	Bytes    int64 // on disk
	Pages    int   // that can be read
}

// Metrics returns the metrics.
func (c *Cache) Metrics() Metrics {
	if c == nil {
		return Metrics{}
	}
	c.mu.Lock()
	pages := len(c.pages)
	c.mu.Unlock()
	s := &c.stats
	return Metrics{Hits: s.hits.Load(), Misses: s.misses.Load(), HitBytes: s.hitBytes.Load(),
		Written: s.written.Load(), Dropped: s.dropped.Load(), Evicted: s.evicted.Load(), Damaged: s.damaged.Load(),
		Failed: s.failed.Load(), Bytes: s.size.Load(), Pages: pages}
}

// failure counts a failed operation of the file system. The first one is logged.
func (c *Cache) failure(err error) {
	if c.stats.failed.Add(1) == 1 {
		c.log.Warn("a file of the cache on disk cannot be used; more of this is only counted",
			"dir", c.dir, "error", err)
	}
}

// damage counts something that is not what it should be. The first one is logged.
func (c *Cache) damage(what string, err error) {
	if c.stats.damaged.Add(1) == 1 {
		c.log.Warn("damage in the cache on disk: what is lost is fetched again; more of this is only counted",
			"dir", c.dir, "file", what, "error", err)
	}
}

package diskcache

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
)

// A fetch reads len(p) bytes of an object at an offset, as objstore.Store.GetRange does: one request.
type fetch func(p []byte, off int64) (int, error)

// A flight is a fetch of pages that is under way.
type flight struct{ done chan struct{} }

// ReadAt fills p with the bytes at off of an object of size bytes, which must have them all. Missing pages are fetched
// in one request, from the first to the last; for a pass, only the part that p has of them. Of several reads that miss
// a page at the same time, one fetches it, and the others wait for that until their ctx ends. The error is nil if and
// only if p was filled.
func (c *Cache) ReadAt(ctx context.Context, object string, size int64, p []byte, off int64, get fetch) (int,
	error) {
	if c.idles() {
		return get(p, off)
	}
	r := diskRead{c: c, object: object, size: size, p: p, off: off, get: get}
	r.pass = len(p) >= c.o.PassSize && off+int64(len(p)) < size // ends of files are what opening them needs
	return r.read(ctx)
}

// ReadValueAt is ReadAt of a file of long values. A read of part bytes or more is a pass. A shorter one reads a value,
// and its pages are kept, unless it is longer than a thirty-second of the cache.
func (c *Cache) ReadValueAt(ctx context.Context, object string, size int64, part int, p []byte, off int64,
	get fetch) (int, error) {
	if c.idles() {
		return get(p, off)
	}
	r := diskRead{c: c, object: object, size: size, p: p, off: off, get: get}
	r.pass = len(p) >= part || int64(len(p)) > max(c.o.Capacity/32, int64(c.o.PageSize))
	return r.read(ctx)
}

func (r *diskRead) read(ctx context.Context) (int, error) {
	c, p, object := r.c, r.p, r.object
	if len(p) == 0 || len(object) > maxPageName {
		return r.get(p, r.off)
	}
	for {
		first, last, missing := r.look()
		if !missing {
			c.stats.hits.Add(1)
			c.stats.hitBytes.Add(int64(len(p)))
			return len(p), nil
		}
		if r.pass {
			c.stats.misses.Add(1)
			return r.fetchPart(first, last)
		}
		own, other := c.board(object, first, last, c.o.PageSize, r.waited)
		if other == nil {
			c.stats.misses.Add(1)
			return r.fetchPages(first, last, own)
		}
		select {
		case <-other.done:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		r.waited = true // if it has failed, or its pages are not kept, this read does not wait again
	}
}

type diskRead struct {
	c      *Cache
	object string
	size   int64
	p      []byte
	off    int64
	get    fetch
	pass   bool
	waited bool
}

// look copies the pages to p that are here. It returns the offsets of the first page and of the last that is not.
func (r *diskRead) look() (first, last int64, missing bool) {
	page := int64(r.c.o.PageSize)
	for at := r.off / page * page; at < r.off+int64(len(r.p)); at += page {
		if !r.c.copyPage(pageKey{r.object, at}, int(min(page, r.size-at)), r.p, r.off, !r.pass) {
			if !missing {
				first, missing = at, true
			}
			last = at
		}
	}
	return first, last, missing
}

// fetchPart fetches what p has of the pages from first to last.
func (r *diskRead) fetchPart(first, last int64) (int, error) {
	from := max(first, r.off)
	end := min(last+int64(r.c.o.PageSize), r.off+int64(len(r.p)))
	n, err := r.get(r.p[from-r.off:end-r.off], from)
	if int64(n) == end-from {
		return len(r.p), nil
	}
	return int(from-r.off) + n, err
}

// fetchPages fetches the pages from first to last, and keeps them. own are the flights that the caller has boarded.
func (r *diskRead) fetchPages(first, last int64, own *flight) (int, error) {
	c, page := r.c, int64(r.c.o.PageSize)
	defer c.land(r.object, first, last, c.o.PageSize, own)
	end := min(last+page, r.size)
	data := make([]byte, end-first)
	if n, err := r.get(data, first); int64(n) < end-first {
		if !errors.Is(err, io.EOF) {
			return 0, err
		}
		return r.get(r.p, r.off) // the object ends before it should: perhaps after what is wanted
	}
	from := max(first, r.off)
	copy(r.p[from-r.off:], data[from-first:])
	for at := first; at < end; at += page {
		// Each has memory of its own: others must not be kept for it.
		c.keep(pageKey{r.object, at}, data[at-first:min(at+page, end)-first], first != last)
	}
	return len(r.p), nil
}

// copyPage copies to p, which begins at off in the object, what it has of a page of length bytes. It reports false if
// the page is not here.
func (c *Cache) copyPage(k pageKey, length int, p []byte, off int64, use bool) bool {
	hash := k.hash()
	c.mu.Lock()
	if w := c.pending[hash]; w != nil && w.key == k && len(w.data) == length {
		c.mu.Unlock()
		copyPart(p, off, w.data, k.offset)
		return true
	}
	at, ok := c.pages[hash]
	s := c.files[at.segment]
	if !ok || s == nil || c.closed || int(at.length) != k.pageLength(length) {
		c.mu.Unlock()
		return false
	}
	if use && !at.used {
		used := at
		used.used = true
		c.pages[hash] = used
	}
	c.mu.Unlock()
	buf := pageBuffers.get(int(at.length))
	defer pageBuffers.put(buf)
	got, data, err := s.page(at, *buf)
	switch {
	case err == nil && got == k:
		copyPart(p, off, data, k.offset)
		return true
	case err == nil: // another page of the same hash
	case errors.Is(err, fs.ErrClosed): // it was evicted
	case errors.Is(err, errPageSum), errors.Is(err, errPageHeader), errors.Is(err, io.EOF):
		c.forget(hash, at)
		c.damage(s.name, err)
	default:
		c.forget(hash, at)
		c.failure(err)
	}
	return false
}

// copyPart copies to p, which begins at off, what it has of data, which begins at from.
func copyPart(p []byte, off int64, data []byte, from int64) {
	if from < off {
		copy(p, data[off-from:])
		return
	}
	copy(p[from-off:], data)
}

// forget makes a page not be here any more, if it is still at a place.
func (c *Cache) forget(hash uint64, at place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now, ok := c.pages[hash]; ok && now.segment == at.segment && now.position == at.position {
		delete(c.pages, hash)
	}
}

// Forget drops the pages that have some of the n bytes at off of an object: they were damaged when they were fetched.
func (c *Cache) Forget(object string, off, n int64) {
	if c.idles() || n <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	page := int64(c.o.PageSize)
	for at := off / page * page; at < off+n; at += page {
		hash := pageKey{object, at}.hash()
		delete(c.pages, hash)
		if w := c.pending[hash]; w != nil {
			w.lost = true
			delete(c.pending, hash)
		}
	}
}

// board enters the pages from first to last as being fetched by the caller, and returns their flight. The caller must
// call land afterwards. If one of them is being fetched, board enters none, and returns that one's flight, or no flight
// if the caller has waited already.
func (c *Cache) board(object string, first, last int64, page int, waited bool) (own, other *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at := first; at <= last; at += int64(page) {
		if f := c.flights[pageKey{object, at}.hash()]; f != nil {
			if waited {
				f = nil
			}
			return nil, f
		}
	}
	own = &flight{make(chan struct{})}
	for at := first; at <= last; at += int64(page) {
		c.flights[pageKey{object, at}.hash()] = own
	}
	return own, nil
}

// land takes the pages off that were entered by board. A nil flight is none.
func (c *Cache) land(object string, first, last int64, page int, own *flight) {
	if own == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for at := first; at <= last; at += int64(page) {
		delete(c.flights, pageKey{object, at}.hash())
	}
	close(own.done)
}

// keep hands a page over to be written, unless there are too many. The data is kept, or a copy.
func (c *Cache) keep(k pageKey, data []byte, clone bool) {
	w := &pendingPage{key: k, hash: k.hash(), data: data}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.pending[w.hash] != nil {
		return
	}
	if c.queued+int64(len(data)) > c.o.QueueBytes {
		c.stats.dropped.Add(1)
		return
	}
	if clone {
		w.data = slices.Clone(data)
	}
	c.enqueue(w)
}

// enqueue hands a page over to be written. The caller holds mu.
func (c *Cache) enqueue(w *pendingPage) {
	c.pending[w.hash] = w
	c.queued += int64(len(w.data))
	c.queue = append(c.queue, w)
	c.work.Signal()
}

// Add puts a whole object of the first size bytes of r into the cache. It waits for the writing: as much as fits into
// the memory for it goes on in the background. It leaves out what it cannot read of r.
func (c *Cache) Add(object string, r io.ReaderAt, size int64) {
	if c.idles() || len(object) > maxPageName {
		return
	}
	page := int64(c.o.PageSize)
	for at := int64(0); at < size; at += page {
		k := pageKey{object, at}
		w := &pendingPage{key: k, hash: k.hash(), data: make([]byte, min(page, size-at))}
		if n, _ := r.ReadAt(w.data, at); n < len(w.data) {
			return
		}
		c.mu.Lock()
		for c.queued > 0 && c.queued+int64(len(w.data)) > c.o.QueueBytes && !c.closed {
			c.idle.Wait()
		}
		if !c.closed && c.pending[w.hash] == nil {
			c.enqueue(w)
		}
		c.mu.Unlock()
	}
}

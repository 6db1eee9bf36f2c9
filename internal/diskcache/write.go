package diskcache

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/siftkv/siftkv/internal/vfs"
)

// A writer belongs to the goroutine of a cache: no other touches it before that has ended.
type writer struct {
	c        *Cache
	most     int64       // bytes of a segment
	number   uint32      // of the last segment
	segments []*segment  // the oldest first; the last is open's, if open is not nil
	stuck    []stuckFile // that could not be removed, and are of no use any more
	open     vfs.WriteFile
	size     int64     // bytes of all on disk, with those that are stuck
	pause    time.Time // nothing is written before
	buf      []byte
}

// run finds what there is, and then writes pages until the cache is closed.
func (w *writer) run() {
	defer close(w.c.done)
	w.load()
	w.c.mu.Lock()
	w.c.loaded = true
	w.c.idle.Broadcast()
	w.c.mu.Unlock()
	for {
		p := w.next()
		if p == nil {
			break
		}
		if time.Now().Before(w.pause) {
			w.c.stats.dropped.Add(1)
		} else if w.write(p) {
			w.c.stats.written.Add(1)
		}
		w.c.stats.size.Store(w.size)
		w.finish(p)
	}
	w.seal()
}

// next waits for a page to write; nil: the cache was closed.
func (w *writer) next() *pendingPage {
	c := w.c
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) == 0 && !c.closed {
		c.work.Wait()
	}
	if c.closed {
		return nil
	}
	p := c.queue[0]
	c.queue[0] = nil
	c.queue = c.queue[1:]
	return p
}

// finish forgets a page that is on disk, or will not be.
func (w *writer) finish(p *pendingPage) {
	c := w.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.lost {
		delete(c.pages, p.hash)
	}
	if c.pending[p.hash] == p {
		delete(c.pending, p.hash)
	}
	c.queued -= int64(len(p.data))
	c.idle.Broadcast()
}

// write writes a page, and reports whether it could.
func (w *writer) write(p *pendingPage) bool {
	w.buf = appendPage(w.buf[:0], p.key, p.data)
	err := w.makeRoom(int64(len(w.buf)))
	if err == nil {
		err = w.append(p.hash, w.buf, false)
	}
	return w.worked(err)
}

// worked reports whether there was no error. After one, the segment is as long as it is, and nothing is written for a
// while.
func (w *writer) worked(err error) bool {
	if err == nil {
		return true
	}
	w.c.failure(err)
	w.pause = time.Now().Add(retryAfter)
	w.leave()
	return false
}

// growth is what a page of n bytes adds to a segment.
func growth(n int64) int64 { return n + indexEntry }

// append writes a page to the open segment, or a new one.
func (w *writer) append(hash uint64, page []byte, used bool) error {
	n := int64(len(page))
	if w.open != nil && w.last().size+growth(n) > w.most {
		w.seal()
	}
	if w.open == nil {
		if err := w.begin(); err != nil {
			return err
		}
	}
	s := w.last()
	position := s.size - indexTrailer - indexEntry*int64(len(s.pages))
	if _, err := w.open.Write(page); err != nil {
		s.size, w.size = s.size+n, w.size+n // a part of it may be there
		return err
	}
	at := place{segment: s.number, position: uint32(position), length: uint32(n), used: used}
	s.size += growth(n)
	w.size += growth(n)
	c := w.c
	c.mu.Lock()
	defer c.mu.Unlock()
	s.pages = append(s.pages, listedPage{hash, at.position, at.length})
	c.pages[hash] = at
	return nil
}

func (w *writer) last() *segment { return w.segments[len(w.segments)-1] }

// begin opens a new segment.
func (w *writer) begin() error {
	c := w.c
	if err := c.fs.MkdirAll(c.dir); err != nil { // it may have been deleted
		return err
	}
	w.number++
	s := &segment{number: w.number, size: segmentHeader + indexTrailer}
	s.name = filepath.Join(c.dir, segmentName(s.number))
	f, err := c.fs.Create(s.name)
	if err != nil {
		return err
	}
	_, err = f.Write(appendSegmentHeader(nil, s.number))
	if err == nil {
		s.file, err = c.limit.Open(c.fs, s.name)
	}
	if err != nil {
		err = errors.Join(err, f.Close())
		w.size += s.onDisk()
		return errors.Join(err, w.remove(stuckFile{s.name, s.onDisk()}))
	}
	w.open, w.size = f, w.size+s.onDisk()
	w.segments = append(w.segments, s)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files[s.number] = s
	return nil
}

// seal ends the open segment with its index.
func (w *writer) seal() {
	if w.open == nil {
		return
	}
	if _, err := w.open.Write(appendIndex(nil, w.last().pages)); err != nil {
		w.c.failure(err) // its pages are found without
	}
	w.leave()
}

// leave closes the open segment.
func (w *writer) leave() {
	if w.open == nil {
		return
	}
	if err := w.open.Close(); err != nil {
		w.c.failure(err)
	}
	w.open = nil
}

// makeRoom evicts segments until a page of n bytes can be written, perhaps in a new segment.
func (w *writer) makeRoom(n int64) error {
	// At most half of a segment's size is written again, and that may need two new segments.
	spare := w.most/2 + 3*(fileOverhead+segmentHeader+indexTrailer)
	full := func() bool { return w.size+growth(n)+spare > w.c.o.Capacity }
	if full() && len(w.stuck) > 0 {
		if err := w.removeStuck(); err != nil && len(w.stuck) >= mostStuck {
			return err
		}
	}
	for full() && len(w.segments) > 0 {
		if len(w.segments) == 1 {
			w.seal()
		}
		if err := w.evict(); err != nil {
			return err
		}
	}
	if full() && len(w.stuck) > 0 {
		return errStuck
	}
	return nil
}

// A stuckFile is a file that could not be removed. It counts as long as it may be there.
type stuckFile struct {
	name string
	size int64 // with what the file system needs
}

// mostStuck is how many files may be stuck before no other is evicted: where nothing can be removed, what is here stays
// readable.
const mostStuck = 4

var errStuck = errors.New("files of the cache cannot be removed, and take its room")

// remove removes a file that counts. If that fails, it goes on to count, and is tried again when room is needed.
func (w *writer) remove(f stuckFile) error {
	if err := w.c.fs.Remove(f.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.stuck = append(w.stuck, f)
		return err
	}
	w.size -= f.size
	return nil
}

// removeStuck tries to remove what is stuck. It returns the first error.
func (w *writer) removeStuck() (first error) {
	stuck := w.stuck
	w.stuck = nil
	for _, f := range stuck {
		if err := w.remove(f); first == nil {
			first = err
		}
	}
	return first
}

// evict removes the oldest segment, and writes those of its pages again that were used.
func (w *writer) evict() error {
	s := w.segments[0]
	again := w.takeOut(s)
	w.segments = slices.Delete(w.segments, 0, 1)
	_ = s.file.Close() // it is only read
	if err := w.remove(stuckFile{s.name, s.onDisk()}); err != nil {
		return err
	}
	for _, p := range again {
		if err := w.append(p.hash, p.data, false); err != nil {
			return err
		}
	}
	return nil
}

// takeOut makes the pages of a segment be here no more, and returns those that were used, as written.
func (w *writer) takeOut(s *segment) (again []pendingPage) {
	c := w.c
	var used []place
	var hashes []uint64
	room := min(s.size, w.most) / 2
	c.mu.Lock()
	for _, p := range s.pages {
		at, ok := c.pages[p.key]
		if !ok || at.segment != s.number || at.position != p.position {
			continue
		}
		delete(c.pages, p.key)
		if at.used && room >= growth(int64(at.length)) {
			room -= growth(int64(at.length))
			used, hashes = append(used, at), append(hashes, p.key)
			continue
		}
		c.stats.evicted.Add(1)
	}
	delete(c.files, s.number)
	c.mu.Unlock()
	for i, at := range used {
		buf := make([]byte, at.length)
		if k, _, err := s.page(at, buf); err == nil && k.hash() == hashes[i] {
			again = append(again, pendingPage{hash: hashes[i], data: buf})
		}
	}
	return again
}

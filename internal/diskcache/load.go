package diskcache

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
)

// load finds what the directory has: the newest first, which is most likely to be asked for. A segment costs a read of
// its index; one that its process did not finish is read as a whole.
func (w *writer) load() {
	c := w.c
	names, err := c.fs.List(c.dir)
	if err != nil {
		c.failure(err)
		return
	}
	var found []*segment
	for _, name := range names {
		number, ok := segmentNumber(name)
		if !ok {
			continue
		}
		w.number = max(w.number, number)
		s := &segment{number: number, name: filepath.Join(c.dir, name)}
		if s.size, err = c.fs.Stat(s.name); err != nil {
			c.failure(err)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			s.size = largestSegment // until it is removed, or found again
			w.stuck, w.size = append(w.stuck, stuckFile{s.name, s.onDisk()}), w.size+s.onDisk()
			continue
		}
		found = append(found, s)
	}
	slices.SortFunc(found, func(a, b *segment) int { return cmp.Compare(b.number, a.number) })
	for _, s := range found {
		switch {
		case c.isClosed():
		case w.loadSegment(s):
			w.segments = append(w.segments, s)
			w.size += s.onDisk()
		}
	}
	slices.Reverse(w.segments)
	c.stats.size.Store(w.size)
}

// loadSegment enters the pages of a segment. A segment that is of no use, or for which there is no room, is removed.
func (w *writer) loadSegment(s *segment) bool {
	c := w.c
	var err error
	if w.size+s.onDisk() > c.o.Capacity || s.size > 2*largestSegment {
		err = errNoRoom
	} else if s.file, err = c.limit.Open(c.fs, s.name); err == nil {
		if err = s.readPages(); err == nil && len(s.pages) == 0 {
			err = errOtherSegment
		}
		if err != nil {
			_ = s.file.Close() // it is only read
		}
	}
	if err == nil {
		w.enter(s)
		return true
	}
	switch {
	case errors.Is(err, errOtherSegment):
		c.damage(s.name, err)
	case !errors.Is(err, errNoRoom):
		c.failure(err)
	}
	w.size += s.onDisk()
	if err := w.remove(stuckFile{s.name, s.onDisk()}); err != nil {
		c.failure(err)
	}
	return false
}

var errNoRoom = errors.New("the cache has become smaller")

// enter makes the pages of a segment readable that are in no newer one.
func (w *writer) enter(s *segment) {
	c := w.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files[s.number] = s
	for _, p := range slices.Backward(s.pages) {
		if _, newer := c.pages[p.key]; !newer {
			c.pages[p.key] = place{segment: s.number, position: p.position, length: p.length}
		}
	}
}

func (c *Cache) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

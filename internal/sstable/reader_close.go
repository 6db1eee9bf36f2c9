package sstable

import (
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/siftkv/siftkv/internal/cache"
)

// A life is what all readers of one open file share that changes.
type life struct {
	reading   readingList
	closed    atomic.Bool
	foreign   *foreignMemory
	forgotten runtime.Cleanup // what Close does, if nobody calls it
}

// A foreignMemory is the part of a reader that the collector does not see: its blocks in
// the cache, and its mapping. It is given back when the reader is gone, so it does not refer to
// the reader, and a method that uses bytes of it keeps the reader alive (runtime.KeepAlive).
type foreignMemory struct {
	id     uint64
	slots  []cache.Slot
	cache  *cache.Cache
	owner  *cache.Owner
	mapped *mapping
	file   io.Closer // nil: the file is not closed with it

	once  sync.Once
	given atomic.Bool
	err   error // of giving it back
}

// watch gives everything back when no reader of the file is reachable. The file that a
// forgotten reader had may be its caller's; that of one that was left is closed.
func (l *life) watch() {
	l.forgotten = runtime.AddCleanup(l, func(m *foreignMemory) { _ = m.giveBack() }, l.foreign)
}

// giveBack gives everything back, once. It returns when that is done, whoever does it.
func (m *foreignMemory) giveBack() error {
	m.once.Do(func() {
		for i := range m.slots {
			m.cache.Drop(slotKey(m.id, i), &m.slots[i], m.owner)
		}
		m.cache.Release()
		if m.mapped != nil {
			m.err = m.mapped.unmap()
		}
		if m.file != nil {
			m.err = errors.Join(m.err, m.file.Close())
		}
		m.given.Store(true)
	})
	return m.err
}

// Close forgets the reader's cached blocks and closes the file. A second Close does nothing.
func (r *Reader) Close() error {
	c, _ := r.file.(io.Closer)
	return r.close(c)
}

func (l *life) close(file io.Closer) error {
	if l.closed.Swap(true) {
		return nil
	}
	l.forgotten.Stop()
	l.foreign.file = file
	return l.foreign.giveBack()
}

// A Left is an open file whose reader was given up while others may have been using it.
type Left struct {
	life    weak.Pointer[life]
	foreign *foreignMemory
}

// Leave gives the reader up while others may be using it: its file is closed, and its memory
// given back, when they have ended and the collector has noticed, or by Left.Close. Nobody calls
// Leave or Close beside it.
func (r *Reader) Leave() Left {
	file, _ := r.file.(io.Closer)
	r.foreign.file = file
	return Left{weak.Make(r.life), r.foreign}
}

// Gone reports whether the file is closed.
func (l Left) Gone() bool { return l.foreign.given.Load() }

// Close closes the file, if it is not closed yet: nobody uses the reader any more. It returns
// when the file is closed, even if the collector has just begun with it.
func (l Left) Close() error {
	if life := l.life.Value(); life != nil {
		life.closed.Store(true)
	}
	return l.foreign.giveBack()
}

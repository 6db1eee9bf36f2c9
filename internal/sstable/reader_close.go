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
	cheap     atomic.Bool // the last block was read without a wait: the system has the file, or much of it, in memory
	foreign   *foreignMemory
	forgotten runtime.Cleanup // does what Close does, if Close is not called
}

// A foreignMemory is the part of a reader that the collector does not see: its blocks in the cache,
// and its mapping. It is released when the reader is gone. So it does not refer to the reader, and
// a method that uses bytes of it keeps the reader alive (runtime.KeepAlive).
type foreignMemory struct {
	id     uint64
	slots  []cache.Slot
	cache  *cache.Cache
	owner  *cache.Owner
	mapped *mapping
	file   io.Closer // nil: the file is not closed with it

	once  sync.Once
	given atomic.Bool
	err   error // of its release
}

// watch gives everything back when no reader of the file is reachable. The file that a
// forgotten reader had may be its caller's; that of one that was left is closed.
func (l *life) watch() {
	l.forgotten = runtime.AddCleanup(l, func(m *foreignMemory) { _ = m.giveBack() }, l.foreign)
}

// giveBack releases everything, once. It returns when that is done, also by another goroutine.
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

// A Left is the open file of a reader that was released while it may have been in use.
type Left struct {
	life    weak.Pointer[life]
	foreign *foreignMemory
}

// Leave releases the reader while it may be in use. Its file is closed, and its memory released, when its users have
// ended and the collector has noticed, or by Left.Close. It must not run concurrently with another Leave or Close.
func (r *Reader) Leave() Left {
	file, _ := r.file.(io.Closer)
	r.foreign.file = file
	return Left{weak.Make(r.life), r.foreign}
}

// Gone reports whether the file is closed.
func (l Left) Gone() bool { return l.foreign.given.Load() }

// Close closes the file, if it is not closed yet. The reader must not be in use any more. It
// returns when the file is closed, even if the collector has just begun with it.
func (l Left) Close() error {
	if life := l.life.Value(); life != nil {
		life.closed.Store(true)
	}
	return l.foreign.giveBack()
}

package values

import (
	"io"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
)

// A stream is a value that goes into a blob file of its own before its handle is committed: Create, Fill, Finish,
// Commit, and End in any case. It is for one goroutine, and Close may come at any time.

// enter reports whether a stream may work on files, until it calls s.gate.RUnlock. Otherwise the store is closed, and
// has removed them.
func (s *Store) enter() bool {
	s.gate.RLock()
	if s.closed {
		s.gate.RUnlock()
	}
	return !s.closed
}

// noteStream notes whether a stream has a file that no memtable holds.
func (s *Store) noteStream(f *File, has bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.streams, f); has {
		s.streams[f] = true
	}
}

// Create creates the blob file of a stream. After Close it returns base.ErrClosed, as Finish and Commit do.
func (s *Store) Create() (*File, error) {
	if !s.enter() {
		return nil, base.ErrClosed
	}
	defer s.gate.RUnlock()
	f, err := s.create(false)
	if err == nil {
		s.noteStream(f, true)
	}
	return f, err
}

// Fill reads size bytes of r into the file, as the value of key. Seq must be larger than the numbers of all writes
// that came before.
func (f *File) Fill(key []byte, seq base.SeqNum, size int64, r io.Reader) (err error) {
	f.handle, err = f.w.AddFrom(key, seq, 0, size, r)
	return err
}

// Finish ends the file, makes it durable, and makes it readable.
func (f *File) Finish() error {
	if err := f.finish(); err != nil {
		return err
	}
	if !f.s.enter() {
		return base.ErrClosed
	}
	defer f.s.gate.RUnlock()
	err := f.sync()
	if err == nil {
		f.s.register(f)
	}
	return err
}

// Commit runs commit, which commits the handle of the value. Then held reports whether a memtable may hold the file,
// also if commit panics or ends the goroutine.
func (f *File) Commit(commit func(h blob.Handle) error, held func() bool) error {
	if !f.s.enter() {
		return base.ErrClosed
	}
	defer f.s.gate.RUnlock()
	defer func() {
		if f.committed = held(); f.committed {
			f.s.noteStream(f, false)
			f.s.Written.Add(uint64(f.Size))
		}
	}()
	return commit(f.handle)
}

// End closes the file for writing. Unless a memtable may hold it, End removes it.
func (f *File) End() {
	if f.w != nil {
		f.w.Abandon()
	}
	_ = f.out.Close() // a file that stays was synced
	if !f.s.enter() {
		return
	}
	defer f.s.gate.RUnlock()
	f.s.noteStream(f, false)
	switch {
	case f.committed:
	case f.s.File(f.Num) != nil: // it is finished
		f.release(true)
	default:
		f.remove()
	}
}

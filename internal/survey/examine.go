package survey

import (
	"errors"
	"io"
	"io/fs"
	"sync"
	"syscall"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A file that the file system cannot read is not damaged: missing permissions, too many open files, or a lost mount say
// nothing of the bytes. So an error of the file system ends a survey, even if a decoder reports it as something else.
// Damage is bytes that were read and are wrong, or are missing.
//
// The exception is Options.ReadAround.

// aboutBytes reports whether an error of the file system is damage: the file is not
// there, or the device cannot give its bytes back and the survey is to read around.
func (s *Store) aboutBytes(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || s.o.ReadAround && errors.Is(err, syscall.EIO)
}

// IsDamage reports whether an error of a reader is damage: bytes that are wrong, or that are lost, as aboutBytes
// has it. Others say nothing of the file.
func (s *Store) IsDamage(err error) bool {
	return errors.Is(err, base.ErrCorruption) || s.aboutBytes(err)
}

// Examine opens a file of the store for the time of a call of look. Fault is what look
// returned, or what kept the file from being opened, if that is damage. Err is set if
// the file system did not let the file be read: what look has found means nothing then.
func (s *Store) Examine(name string, look func(f vfs.ReadFile) error) (fault, err error) {
	file, err := s.fs.Open(s.path(name))
	if err != nil {
		if s.aboutBytes(err) {
			return err, nil
		}
		return nil, err
	}
	w := &watchedFile{ReadFile: file, s: s}
	fault = look(w)
	if err := errors.Join(w.err, file.Close()); err != nil {
		return nil, err
	}
	return fault, nil
}

// A watchedFile remembers the first error of the file system that is no damage.
type watchedFile struct {
	vfs.ReadFile
	s *Store

	mu  sync.Mutex
	err error
}

func (w *watchedFile) watch(err error) {
	if err == nil || errors.Is(err, io.EOF) || w.s.aboutBytes(err) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

func (w *watchedFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := w.ReadFile.ReadAt(b, off)
	if n < len(b) {
		w.watch(err)
	}
	return n, err
}

func (w *watchedFile) PartSize() int {
	if f, ok := w.ReadFile.(vfs.PartReader); ok {
		return f.PartSize()
	}
	return 0
}

func (w *watchedFile) Size() (int64, error) {
	n, err := w.ReadFile.Size()
	w.watch(err)
	return n, err
}

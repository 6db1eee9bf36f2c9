package s3

import (
	"errors"
	"io"
	"sync"
)

var errStopped = errors.New("the try is over")

// A source is the body of one try: size bytes of r from off. The HTTP client may read a body after its reply, which
// must not reach r when the call has returned: stop prevents it.
type source struct {
	mu        sync.Mutex
	r         io.ReaderAt
	off, size int64
	at        int64 // from off
	err       error // of r
	stopped   bool
}

func (s *source) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return 0, errStopped
	}
	if s.at >= s.size {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), s.size-s.at)]
	n, err := s.r.ReadAt(p, s.off+s.at)
	s.at += int64(n)
	if n == len(p) {
		return n, nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	s.err = err
	return n, err
}

func (s *source) Seek(offset int64, whence int) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch whence {
	case io.SeekCurrent:
		offset += s.at
	case io.SeekEnd:
		offset += s.size
	}
	if offset < 0 {
		return 0, errors.New("a place before the beginning")
	}
	s.at = offset
	return offset, nil
}

// stop makes the source leave r alone, and returns the error that r has had.
func (s *source) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	return s.err
}

package blob

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compression"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Scanner reads the records of a file from front to back, in pieces of 256 KiB, or in parts of a vfs.PartReader, to
// verify a file or to rebuild tables. A record's key is right when Next has returned true; its value is right if Value
// returns it, or Check says so. Damaged bytes of a vfs.Rereader are read once again. It is not safe for concurrent use.
type Scanner struct {
	r       *Reader
	end     int64 // records do not go on from here
	ordinal uint64
	at      int64 // of the record
	next    int64 // of what follows it
	record  prefix
	err     error

	buf   []byte // of the file, beginning at start
	start int64
	anew  bool  // buf was read again
	ahead int64 // how much it reads at a time, in bytes
	tried int64 // bytes that Skip may still hold against a checksum
}

// scanSize is how much a scanner reads at a time, in bytes, where reads are no requests, unless ReadAhead says less.
const scanSize = 256 << 10

// ReadAhead sets how much the scanner reads at a time, which it holds in memory: at least a kibibyte.
func (s *Scanner) ReadAhead(bytes int) { s.ahead = int64(max(bytes, 1<<10)) }

// NewScanner returns a scanner that is on no record. In a file without a footer, because its end was lost, all after
// the header counts as records.
func NewScanner(r *Reader) (*Scanner, error) {
	s := &Scanner{r: r, end: r.size, next: headerSize, ahead: scanSize, tried: mostTried * r.size}
	if f, ok := r.file.(vfs.PartReader); ok {
		s.ahead = int64(max(f.PartSize(), pieceSize+sumSize))
	}
	if r.unfinished {
		s.end -= footerSize
		return s, nil
	}
	b := make([]byte, footerSize)
	var none error // why there is no footer
	err := r.readChecked(b, r.size-footerSize, func() error {
		if _, none = decodeFooter(b, r.size); none != nil {
			none = r.refuse(r.size-footerSize, none)
		}
		return none
	})
	switch {
	case err == nil:
		s.end -= footerSize
	case !errors.Is(err, none):
		return nil, err
	}
	return s, nil
}

// Record returns what the record says of its value. The key is valid until the next move.
func (s *Scanner) Record() Record { return s.record.Record }

// Handle returns the handle of the record in a file of this number. The ordinal is right as long as Skip was not
// needed.
func (s *Scanner) Handle(file uint64) Handle {
	return Handle{File: file, Ordinal: s.ordinal - 1, Offset: s.at, Length: s.record.length, Size: s.record.Size}
}

// Err returns what ended the scan before the end of the file.
func (s *Scanner) Err() error { return s.err }

// Next moves to the next record. It reports false at the end, and where there is none, or one with a damaged key: see
// Err and Skip.
func (s *Scanner) Next() bool {
	if s.err != nil || s.next >= s.end {
		return false
	}
	s.at = s.next
	p, err := s.head(s.at)
	if errors.Is(err, base.ErrCorruption) && s.readAgain(s.at) {
		p, err = s.head(s.at)
	}
	if err != nil {
		s.err = err
		return false
	}
	s.record, s.next = p, s.at+p.length
	s.ordinal++
	return true
}

// head reads and checks the beginning of the record at an offset.
func (s *Scanner) head(at int64) (p prefix, err error) {
	b, err := s.bytes(at, maxPrefix)
	if err != nil {
		return p, err
	}
	if p, err = decodePrefix(b); err == nil {
		if p.length > s.end-at {
			err = errOutside
		} else if b, err = s.bytes(at, p.valueAt()); err != nil {
			return p, err
		} else {
			s.tried -= int64(len(b))
			err = p.check(b, s.r.id, at)
		}
	}
	if err != nil {
		return p, s.r.corrupt(at, err)
	}
	return p, nil
}

// bytes returns n bytes at an offset, or fewer if the records end before, valid until the next call. It prefetches.
func (s *Scanner) bytes(at int64, n int) ([]byte, error) {
	n = int(min(int64(n), s.end-at))
	if at < s.start || at+int64(n) > s.start+int64(len(s.buf)) {
		size := int(min(max(int64(n), s.ahead), s.end-at))
		if cap(s.buf) < size {
			s.buf = make([]byte, size)
		}
		s.buf, s.start, s.anew = s.buf[:size], at, false
		if err := s.r.readFull(s.buf, at); err != nil {
			s.buf = s.buf[:0]
			return nil, err
		}
	}
	return s.buf[at-s.start:][:n], nil
}

// readAgain reads the buffer's bytes after an offset once more, past all caches, and reports whether it did. It does so
// once for each buffer, so that a damaged file is not read again and again.
func (s *Scanner) readAgain(at int64) bool {
	if s.r.again == nil || s.anew || at < s.start || at >= s.start+int64(len(s.buf)) {
		return false
	}
	s.anew = true
	if s.r.readIn(vfs.AgainFile{Rereader: s.r.again}, s.buf[at-s.start:], at) != nil {
		s.buf = s.buf[:0] // the next use of the bytes reads them, and gets the error
		return false
	}
	return true
}

// eachPiece calls f with the checked pieces of the record's value as it is stored.
func (s *Scanner) eachPiece(f func(piece []byte)) error {
	key := bytes.Clone(s.record.Key) // its memory is read over
	s.record.Key = key
	at := s.at + int64(s.record.valueAt())
	for left := s.record.Stored; left > 0; {
		n := int(min(left, pieceSize))
		b, err := s.bytes(at, n+sumSize)
		if err != nil {
			return err
		}
		piece, err := checkPiece(b, s.r.id, at)
		if err != nil && s.readAgain(at) {
			piece, err = checkPiece(b, s.r.id, at) // in the same memory
		}
		if err != nil {
			return s.r.corrupt(s.at, fmt.Errorf("key %q: %w", key, err))
		}
		f(piece)
		at += int64(len(b))
		left -= int64(n)
	}
	return nil
}

// Check checks the record's value. It takes memory for one that is compressed only.
func (s *Scanner) Check() error {
	if s.record.Compression == compression.None {
		return s.eachPiece(func([]byte) {})
	}
	_, err := s.Value(nil)
	return err
}

// Value appends the record's value to dst.
func (s *Scanner) Value(dst []byte) ([]byte, error) {
	had := len(dst)
	if s.record.Compression == compression.None {
		err := s.eachPiece(func(piece []byte) { dst = append(dst, piece...) })
		if err != nil {
			dst = dst[:had]
		}
		return dst, err
	}
	stored := make([]byte, 0, s.record.Stored)
	if err := s.eachPiece(func(piece []byte) { stored = append(stored, piece...) }); err != nil {
		return dst, err
	}
	value, err := s.record.decode(nil, stored)
	if err != nil {
		return dst, s.r.corrupt(s.at, fmt.Errorf("key %q: %w", s.record.Key, err))
	}
	return append(dst, value...), nil
}

// mostTried bounds what Skip does, in sizes of the file: bytes that look like records with long keys everywhere would
// otherwise take time in proportion to the square of their number.
const mostTried = 64

var errTried = errors.New("too much in the file looks like a record and is none: the rest is not looked at")

// Skip moves, after damage, to the next record with a right key and value: one of the two might be right by chance at
// one of many offsets. It reports false if there is none, or reading fails.
func (s *Scanner) Skip() bool {
	if !errors.Is(s.err, base.ErrCorruption) {
		return false
	}
	s.err = nil
	for at := s.at + 1; at+MinRecord <= s.end; at++ {
		b, err := s.bytes(at, min(maxPrefix, MinRecord))
		if err != nil {
			s.err = err
			return false
		}
		if !mayBegin(b) {
			continue
		}
		p, err := s.head(at)
		if err == nil {
			s.tried -= p.length
			s.record, s.at, s.next = p, at, at+p.length
			s.ordinal++
			err = s.Check()
		}
		switch {
		case err == nil:
			return true
		case !errors.Is(err, base.ErrCorruption):
			s.err = err
			return false
		case s.tried < 0:
			s.err = s.r.corrupt(at, errTried)
			return false
		}
	}
	s.next = s.end
	return false
}

// mayBegin reports whether a record may begin with b, which has at least MinRecord bytes.
func mayBegin(b []byte) bool {
	kind := compression.Kind(b[sumSize] &^ formExpires)
	return kind != compression.Default && kind.Valid()
}

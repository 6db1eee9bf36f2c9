package blob

import (
	"io"

	"github.com/siftkv/siftkv/internal/compression"
)

// A Stream is one value that is read piece by piece: nothing is given out that was not checked, and no more than a
// piece is in memory, unless the value is compressed. It is not safe for concurrent use.
type Stream struct {
	r      *Reader
	h      Handle
	record Record
	at     int64  // in the file, of the next piece
	left   int64  // stored bytes of that piece and later ones
	buf    []byte // of pieces
	given  []byte // checked, or decoded, and not given out yet
	opened bool   // Read was called
	err    error  // of the last piece that could not be read
}

// Err returns why a piece could not be read, or is damaged: it tells the failures of Writer.Copy that are the stream's
// from those of the file that it writes.
func (s *Stream) Err() error { return s.err }

// OpenStream returns the value of key that a handle leads to. Its key is checked.
func (r *Reader) OpenStream(key []byte, h Handle) (*Stream, error) {
	if err := r.admits(h); err != nil {
		return nil, err
	}
	b := make([]byte, min(h.Length, int64(maxPrefix+len(key))))
	var p prefix
	err := r.readChecked(b, h.Offset, func() (err error) {
		p, err = r.head(b, key, h)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Stream{r: r, h: h, record: p.Record, at: h.Offset + int64(p.valueAt()), left: p.Stored}, nil
}

// Taken returns the number of bytes of the record that were read.
func (s *Stream) Taken() int64 { return s.at - s.h.Offset }

// Record returns what the record says of the value. Its key is valid as long as the stream is.
func (s *Stream) Record() Record { return s.record }

func (s *Stream) Read(b []byte) (n int, err error) {
	if !s.opened && s.record.Compression != compression.None {
		if s.given, err = s.decoded(); err != nil {
			return 0, err
		}
	}
	s.opened = true
	if len(s.given) == 0 && len(b) > 0 {
		if s.left == 0 {
			return 0, io.EOF
		}
		if s.given, err = s.nextPiece(); err != nil {
			return 0, err
		}
	}
	n = copy(b, s.given)
	s.given = s.given[n:]
	return n, nil
}

// nextPiece reads and checks the next stored bytes, which are valid until the next call.
func (s *Stream) nextPiece() ([]byte, error) {
	n := int(min(s.left, pieceSize))
	if cap(s.buf) < n+sumSize {
		s.buf = make([]byte, n+sumSize)
	}
	b := s.buf[:n+sumSize]
	var piece []byte
	err := s.r.readChecked(b, s.at, func() (err error) {
		if piece, err = checkPiece(b, s.r.id, s.at); err != nil {
			err = s.r.corrupt(s.at, err)
		}
		return err
	})
	if err != nil {
		s.err = err
		return nil, err
	}
	s.at += int64(len(b))
	s.left -= int64(n)
	return piece, nil
}

// decoded returns a compressed value.
func (s *Stream) decoded() ([]byte, error) {
	stored := make([]byte, 0, s.left)
	for s.left > 0 {
		piece, err := s.nextPiece()
		if err != nil {
			return nil, err
		}
		stored = append(stored, piece...)
	}
	value, err := s.record.decode(nil, stored)
	if err != nil {
		return nil, s.r.corrupt(s.h.Offset, err)
	}
	return value, nil
}

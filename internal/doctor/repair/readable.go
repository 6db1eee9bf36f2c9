package repair

import (
	"errors"
	"io"

	"github.com/siftkv/siftkv/internal/blob"
)

// maxInMemory is the longest record in bytes that is read once, into memory, to be checked and copied. Longer ones
// are read twice: what is copied must be whole, or the file that it goes to is worthless.
const maxInMemory = 4 << 20

// readable returns a reader from which the value of a handle can be read, and nil if it is lost. It has read all of the
// value. The reader is for this value, and valid until the next call.
func (r *repairer) readable(b *blobFile, key []byte, h blob.Handle) (*blob.Reader, error) {
	src, err := r.open(b)
	if src == nil || err != nil {
		return nil, err
	}
	if h.Length <= maxInMemory && h.Length <= b.size-h.Offset {
		if src, err = r.inMemory(b, h); src == nil || err != nil {
			return nil, err
		}
	}
	s, err := src.OpenStream(key, h)
	if err == nil {
		_, err = io.Copy(io.Discard, s)
	}
	switch {
	case err == nil:
		return src, nil
	case r.s.IsDamage(err):
		return nil, nil
	}
	return nil, err
}

// inMemory reads a record, and returns a reader of a file that has no other; nil if its bytes are lost.
func (r *repairer) inMemory(b *blobFile, h blob.Handle) (*blob.Reader, error) {
	if int64(cap(r.record)) < h.Length {
		r.record = make([]byte, h.Length)
	}
	w := window{r.record[:h.Length], h.Offset}
	if n, err := b.file.ReadAt(w.b, w.at); int64(n) < h.Length {
		if errors.Is(err, io.EOF) || r.s.IsDamage(err) {
			return nil, nil
		}
		return nil, err
	}
	return blob.NewReader(w, b.size, b.readerOptions())
}

// A window is a piece of a file, as one that has nothing else.
type window struct {
	b  []byte
	at int64
}

func (w window) ReadAt(b []byte, off int64) (int, error) {
	if off < w.at || off-w.at > int64(len(w.b)) {
		return 0, io.EOF
	}
	n := copy(b, w.b[off-w.at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

package blob

import (
	"slices"

	"github.com/siftkv/siftkv/internal/compression"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Neighbouring values are read together: a caller with several handles of a file reads a span of it that has their
// records, and takes the values out of that.

// ReadNow reads len(b) bytes at offset if they are in memory, and says whether it did. They have yet to be checked, by
// ValueIn.
func (r *Reader) ReadNow(b []byte, offset int64) vfs.NowRead {
	if r.now == nil {
		return vfs.NowUnable
	}
	return r.now.ReadNow(b, offset)
}

// ReadSpan reads len(b) bytes at offset, and waits for them. They have yet to be checked, by ValueIn.
func (r *Reader) ReadSpan(b []byte, offset int64) error { return r.readIn(r.file, b, offset) }

// Admits reports whether a handle may be one of the file: bytes outside must not be read.
func (r *Reader) Admits(h Handle) bool { return r.admits(h) == nil }

// ValueIn returns the value of key that a handle leads to, out of a span of the file that was read at offset and has
// the whole record. The value is in the span's memory, of which the record's bytes are changed, or appended to dst if
// it is compressed: then rest is dst with the value, and else dst.
func (r *Reader) ValueIn(span []byte, offset int64, dst, key []byte, h Handle) (value, rest []byte, err error) {
	if err := r.admits(h); err != nil {
		return nil, dst, err
	}
	at := h.Offset - offset
	if at < 0 || at+h.Length > int64(len(span)) {
		return nil, dst, r.corrupt(h.Offset, errOutside)
	}
	p, stored, err := r.checked(span[at:at+h.Length:at+h.Length], key, h)
	if err != nil || p.Compression == compression.None {
		return stored, dst, err
	}
	dst = slices.Grow(dst, int(p.Size))
	had := len(dst)
	if rest, err = r.decode(dst, p, stored, h); err != nil {
		return nil, dst, err
	}
	return rest[had:len(rest):len(rest)], rest, nil
}

package blob

import (
	"io"

	"github.com/siftkv/siftkv/internal/vfs"
)

// Pass returns a reader of the same file for one goroutine that reads it from front to back, but may skip records. If a
// read is a request (vfs.PartReader), it prefetches, first a little, then up to a part, as long as the next record is
// near the one before; otherwise it is r. It has at most a part in memory, and at most the larger of most bytes and 128
// KiB. It is valid while r is open, and is not closed.
func (r *Reader) Pass(most int) *Reader {
	f, ok := r.file.(vfs.PartReader)
	if !ok {
		return r
	}
	return r.through(&aheadFile{size: r.size, part: min(f.PartSize(), max(most, firstWindow))})
}

// OpenAhead is OpenStream of a value that will be read as a whole. If a read is a request (vfs.PartReader), it
// prefetches up to a part of the record, or most bytes, which it has in memory.
func (r *Reader) OpenAhead(key []byte, h Handle, most int) (*Stream, error) {
	f, ok := r.file.(vfs.PartReader)
	if !ok {
		return r.OpenStream(key, h)
	}
	if err := r.admits(h); err != nil {
		return nil, err
	}
	part := min(f.PartSize(), most)
	ahead := &aheadFile{size: h.Offset + h.Length, part: part, window: part, start: h.Offset, end: h.Offset}
	return r.through(ahead).OpenStream(key, h)
}

// through returns a reader of the same file through f.
func (r *Reader) through(f *aheadFile) *Reader {
	f.file, f.again = r.file, r.again
	pass := &Reader{file: f, far: r.far, name: r.name, hint: r.hint, id: r.id, size: r.size}
	if r.again != nil {
		pass.again = f
	}
	return pass
}

// The first window of an aheadFile in bytes, and how many times as long the next is. After a gap of more than a window
// it begins with the first again: fetching that many bytes in vain takes less time than a request.
const (
	firstWindow  = 128 << 10
	windowGrowth = 8
)

type aheadFile struct {
	file  io.ReaderAt
	again vfs.Rereader
	size  int64
	part  int

	window int
	buf    []byte // of the file, beginning at start
	start  int64
	end    int64 // of the last requested range
}

func (f *aheadFile) ReadAt(p []byte, off int64) (int, error) {
	near := off >= f.start && off-f.end <= int64(f.window)
	f.end = off + int64(len(p))
	if off >= f.start && f.end <= f.start+int64(len(f.buf)) {
		return copy(p, f.buf[off-f.start:]), nil
	}
	if near {
		f.window = min(f.window*windowGrowth, f.part)
	} else {
		f.window = min(firstWindow, f.part)
	}
	n := int(min(int64(f.window), f.size-off))
	if len(p) >= n || off < 0 {
		return f.file.ReadAt(p, off)
	}
	var had []byte // the buffered beginning of the next window
	if off >= f.start && off < f.start+int64(len(f.buf)) {
		had = f.buf[off-f.start:]
	}
	if cap(f.buf) < n {
		f.buf = make([]byte, n)
	}
	f.buf, f.start = f.buf[:n], off
	kept := copy(f.buf, had)
	m, err := f.file.ReadAt(f.buf[kept:], off+int64(kept))
	if f.buf = f.buf[:kept+m]; len(f.buf) >= len(p) {
		return copy(p, f.buf), nil
	}
	return copy(p, f.buf), err
}

// ReadAgain implements vfs.Rereader. It drops what was prefetched, which came with the damaged bytes.
func (f *aheadFile) ReadAgain(p []byte, off int64) (int, error) {
	f.buf = f.buf[:0]
	return f.again.ReadAgain(p, off)
}

var _ vfs.Rereader = (*aheadFile)(nil)

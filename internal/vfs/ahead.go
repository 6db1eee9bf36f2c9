package vfs

import "io"

// The first window of an Ahead in bytes, and how many times as long the next is. After a gap of more than a window it
// begins with the first again: fetching that many bytes in vain takes less time than a request.
const (
	FirstWindow  = 128 << 10
	windowGrowth = 8
)

// An Ahead reads a file of which a read is a request (PartReader) from front to back, but may skip some. It prefetches,
// first a little, then up to a part, as long as the next read is near the one before. It is for one goroutine.
type Ahead struct {
	File  io.ReaderAt
	Size  int64 // of the file, or more
	Part  int   // bytes of the longest window
	Whole bool  // the first window is as long

	window int
	buf    []byte // of the file, beginning at start
	start  int64
	end    int64 // of the last requested range
}

// ReadAt implements io.ReaderAt.
func (f *Ahead) ReadAt(p []byte, off int64) (int, error) {
	near := f.window > 0 && off >= f.start && off-f.end <= int64(f.window)
	f.end = off + int64(len(p))
	if off >= f.start && f.end <= f.start+int64(len(f.buf)) {
		return copy(p, f.buf[off-f.start:]), nil
	}
	switch {
	case near:
		f.window = min(f.window*windowGrowth, f.Part)
	case f.window == 0 && f.Whole:
		f.window = f.Part
	default:
		f.window = min(FirstWindow, f.Part)
	}
	n := int(min(int64(f.window), f.Size-off))
	if len(p) >= n || off < 0 {
		return f.File.ReadAt(p, off)
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
	m, err := f.File.ReadAt(f.buf[kept:], off+int64(kept))
	if f.buf = f.buf[:kept+m]; len(f.buf) >= len(p) {
		return copy(p, f.buf), nil
	}
	return copy(p, f.buf), err
}

// ReadAgain is that of the file, which is a Rereader. It drops what was prefetched, which came with the damaged bytes.
func (f *Ahead) ReadAgain(p []byte, off int64) (int, error) {
	f.buf = f.buf[:0]
	return f.File.(Rereader).ReadAgain(p, off)
}

// An AgainFile is a file past all caches.
type AgainFile struct{ Rereader }

// ReadAt implements io.ReaderAt.
func (f AgainFile) ReadAt(p []byte, off int64) (int, error) { return f.ReadAgain(p, off) }

package blob

import (
	"io"

	"github.com/siftkv/siftkv/internal/vfs"
)

// Pass returns a reader of the same file for one goroutine that goes through it from front to back, though
// it may leave records out: where a read is a request (vfs.PartReader), it reads ahead, first a little, then
// up to a part, as long as the next record stands near the one before; elsewhere it is r. It has a part in
// memory at the most, and no more than so many bytes, or 128 KiB. It is valid as long as r is open, and is not
// closed.
func (r *Reader) Pass(most int) *Reader {
	f, ok := r.file.(vfs.PartReader)
	if !ok {
		return r
	}
	ahead := &aheadFile{file: r.file, size: r.size, part: min(f.PartSize(), max(most, firstWindow))}
	pass := &Reader{file: ahead, name: r.name, hint: r.hint, id: r.id, size: r.size}
	if ahead.again = r.again; r.again != nil {
		pass.again = ahead
	}
	return pass
}

// The first window of an aheadFile in bytes, and how many times as long the next is. Who leaves out more
// than a window begins with the first again: to fetch so many bytes in vain takes less than a request.
const (
	firstWindow  = 128 << 10
	windowGrowth = 8
)

// An aheadFile is a file of which more is read than is asked for.
type aheadFile struct {
	file  io.ReaderAt
	again vfs.Rereader
	size  int64
	part  int

	window int
	buf    []byte // of the file, from start on
	start  int64
	end    int64 // of what was asked for last
}

// ReadAt implements io.ReaderAt.
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
	if cap(f.buf) < n {
		f.buf = make([]byte, n)
	}
	f.buf, f.start = f.buf[:n], off
	m, err := f.file.ReadAt(f.buf, off)
	if f.buf = f.buf[:m]; m >= len(p) {
		return copy(p, f.buf), nil
	}
	return copy(p, f.buf), err
}

// ReadAgain implements vfs.Rereader. What was read ahead is given up: it came with what is damaged.
func (f *aheadFile) ReadAgain(p []byte, off int64) (int, error) {
	f.buf = f.buf[:0]
	return f.again.ReadAgain(p, off)
}

var _ vfs.Rereader = (*aheadFile)(nil)

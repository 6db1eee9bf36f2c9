package wal

import (
	"io"

	"github.com/siftkv/siftkv/internal/vfs"
)

// Whole returns the log's file, which is open as f, with what a broken writer was to flush at its end. It is valid
// until CloseFile, and the caller must not append meanwhile.
func (w *Writer) Whole(f vfs.ReadFile) vfs.ReadFile {
	if len(w.buf) == 0 {
		return f
	}
	return &wholeFile{ReadFile: f, offset: w.flushed.Load(), tail: w.buf}
}

// A wholeFile is a file that has a tail from an offset on.
type wholeFile struct {
	vfs.ReadFile
	offset int64
	tail   []byte
}

func (f *wholeFile) Size() (int64, error) { return f.offset + int64(len(f.tail)), nil }

func (f *wholeFile) ReadAt(p []byte, off int64) (n int, err error) {
	if off < f.offset {
		n, err = f.ReadFile.ReadAt(p[:min(int64(len(p)), f.offset-off)], off)
		if off += int64(n); off < f.offset {
			return n, err
		}
	}
	n += copy(p[n:], f.tail[min(off-f.offset, int64(len(f.tail))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

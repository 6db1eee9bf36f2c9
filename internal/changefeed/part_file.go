package changefeed

import (
	"errors"
	"io"

	"github.com/siftkv/siftkv/internal/vfs"
)

// minPart is how many bytes a part has at the least.
const minPart = 64 << 10

// A partFile reads a file, of which each read is a request, front to back in parts. The file does not change.
type partFile struct {
	vfs.ReadFile
	size  int
	again bool   // what a cache has may be damaged
	part  []byte // that was read last
	at    int64  // its offset
}

// ReadAt implements vfs.ReadFile.
func (f *partFile) ReadAt(p []byte, off int64) (n int, err error) {
	for err == nil && n < len(p) {
		if in := off + int64(n) - f.at; in >= 0 && in < int64(len(f.part)) {
			n += copy(p[n:], f.part[in:])
			continue
		}
		b := f.part[:cap(f.part)]
		if len(b) < f.size {
			b = make([]byte, f.size)
		}
		m := 0
		read := f.ReadFile.ReadAt
		if file, ok := f.ReadFile.(vfs.Rereader); ok && f.again {
			read = file.ReadAgain
		}
		m, err = read(b, off+int64(n))
		f.part, f.at = b[:m], off+int64(n)
		if m > 0 && errors.Is(err, io.EOF) {
			err = nil // what is asked for may be there
		}
	}
	return n, err
}

package sstable

import (
	"errors"
	"fmt"
	"io"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Bytes of a remote file may be damaged on their way. So damaged bytes are read once again before an error is returned.

// readAgain is readInto past all caches.
func (r *Reader) readAgain(raw []byte, kind blockKind, offset uint64) ([]byte, Compression, error) {
	if err := readFull(againFile{r}, raw, int64(offset)); err != nil {
		return nil, 0, r.ioError(int64(offset), fmt.Errorf("again, as it was damaged: %w", err))
	}
	return r.stored(raw, kind, offset)
}

// openAgain opens the file again if err or the state of the filters says that the tail is damaged.
func (r *Reader) openAgain(opts *ReaderOptions, err error) error {
	filterErr := errors.Join(r.filterErr, r.rangesErr)
	if r.again == nil || !maybeDamage(err) && !errors.Is(filterErr, base.ErrCorruption) {
		return err
	}
	file := r.file
	defer func() { r.file = file }()
	r.file = againFile{r}
	return r.open(opts)
}

// maybeDamage reports whether an error may be one of bytes that were damaged on their way: a newer format is a bit that
// was flipped until it was read again.
func maybeDamage(err error) bool {
	return errors.Is(err, base.ErrCorruption) || errors.Is(err, ErrNewerFormat)
}

// unowned returns the file for a reader that does not close it.
func (r *Reader) unowned() io.ReaderAt {
	if r.again == nil {
		return struct{ io.ReaderAt }{r.file}
	}
	return struct {
		io.ReaderAt
		vfs.Rereader
	}{r.file, r.again}
}

// An againFile is a reader's file past all caches.
type againFile struct{ r *Reader }

var _ io.ReaderAt = againFile{}

// ReadAt implements io.ReaderAt.
func (f againFile) ReadAt(p []byte, off int64) (int, error) { return f.r.again.ReadAgain(p, off) }

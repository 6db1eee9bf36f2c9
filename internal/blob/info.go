package blob

import (
	"errors"
	"fmt"
	"io"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/vfs"
)

// ReadInfo returns what a file of size bytes says of itself in its header and its footer.
func ReadInfo(f io.ReaderAt, size int64, name string) (Info, error) {
	r, err := NewReader(f, size, ReaderOptions{Name: name})
	if err != nil {
		return Info{}, err
	}
	return r.info()
}

// ReadID returns the id that a file of size bytes says it has in its header, or in its footer if the header is damaged
// or cannot be read; 0 if neither tells.
func ReadID(f io.ReaderAt, size int64) uint64 {
	var head [headerSize]byte
	if n, _ := f.ReadAt(head[:], 0); n == headerSize {
		if id, _, err := decodeHeader(head[:]); err == nil {
			return id
		}
	}
	var tail [footerSize]byte
	if size < MinSize {
		return 0
	}
	if n, _ := f.ReadAt(tail[:], size-footerSize); n == footerSize {
		if i, err := decodeFooter(tail[:], size); err == nil {
			return i.ID
		}
	}
	return 0
}

// Unfinished reports whether a file of size bytes does not end in a footer.
func Unfinished(f io.ReaderAt, size int64) (bool, error) {
	if size < MinSize {
		return true, nil
	}
	var tail [footerSize]byte
	if n, err := f.ReadAt(tail[:], size-footerSize); n < footerSize {
		return false, err
	}
	_, err := decodeFooter(tail[:], size)
	return err != nil, nil
}

// info reads header and footer.
func (r *Reader) info() (i Info, err error) {
	var head [headerSize]byte
	if err = r.readFull(head[:], 0); err != nil {
		return i, err
	}
	id, order, err := decodeHeader(head[:])
	if err != nil {
		return i, r.refuse(0, err)
	}
	var tail [footerSize]byte
	if err = r.readFull(tail[:], r.size-footerSize); err != nil {
		return i, err
	}
	i, err = decodeFooter(tail[:], r.size)
	if err == nil && i.ID != id {
		err = fmt.Errorf("footer: it is of the file with id %#x, and the header of %#x", i.ID, id)
	}
	if err != nil {
		return Info{}, r.refuse(r.size-footerSize, err)
	}
	i.ByCommit = order == byCommit
	return i, nil
}

// OpenUnfinished returns a reader of a file of size bytes that may be without a footer, as one is that is being
// written: whether a record is whole shows when it is read. It reads the header, and reports whether the records are in
// the order of commits.
func OpenUnfinished(f io.ReaderAt, size int64, o ReaderOptions) (r *Reader, byCommits bool, err error) {
	r = &Reader{file: f, name: o.Name, hint: o.Hint, size: size + footerSize}
	r.again, _ = f.(vfs.Rereader)
	var head [headerSize]byte
	if err := r.readFull(head[:], 0); err != nil {
		return nil, false, err
	}
	id, order, err := decodeHeader(head[:])
	if err != nil {
		return nil, false, r.refuse(0, err)
	}
	r.id = id
	return r, order == byCommit, nil
}

// refuse returns the error of a header or footer. A newer format is no damage.
func (r *Reader) refuse(offset int64, err error) error {
	if errors.Is(err, base.ErrNewerFormat) {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	return r.corrupt(offset, err)
}

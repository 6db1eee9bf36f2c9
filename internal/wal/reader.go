package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Reader returns the records of a log. It is for one goroutine. The caller closes the file.
//
// A log ends in one of these ways, which Next reports:
//
//   - io.EOF, and Clean is true: the log was closed, and is whole.
//   - io.EOF, and Clean is false: it ends with a whole record, or empty, but was
//     not closed. Further records may have been lost.
//   - ErrTornTail: it breaks off inside a record, a header or zeros, and nothing
//     of this log follows.
//   - A *base.CorruptionError: damage, with fragments of this log after it. If it
//     is before SyncedTo, bytes were damaged that had been durable; elsewhere, a
//     power cut that kept later pages and not earlier ones explains it as well.
//   - ErrNewerFormat, or an error of the file: the log could not be read.
//
// An error stays: Next returns it again. After a torn tail or damage, Skip lets Next go on.
type Reader struct {
	r    vfs.ReadFile
	name string
	id   uint64

	opened bool
	size   int64  // of the file
	block  []byte // the block that was read last
	loaded int64  // its offset

	off    int64  // of the next fragment
	record []byte // assembled from fragments
	inside bool   // a record has begun and not ended
	start  int64  // of the last record that began
	orphan bool   // fragments of a record that began before a skip may follow

	synced  int64
	clean   bool
	skipped int64

	err       error
	resume    int64 // where to look for fragments after damage
	scanned   bool
	lastFound int64 // offset of the last fragment, by the scan after the first damage
}

// NewReader returns a reader of the log with an id from its start. The name is
// that of errors. It does no I/O before the first Next.
func NewReader(r vfs.ReadFile, name string, id uint64) *Reader {
	return &Reader{r: r, name: name, id: id, loaded: -1, lastFound: -1}
}

// Next returns the next record, or an error that says how the log ends (see
// Reader). The record is valid until the next call of Next or Skip.
func (r *Reader) Next() (record []byte, err error) {
	if r.err == nil {
		record, r.err = r.next()
	}
	return record, r.err
}

// Take returns the last record of Next in memory that the caller owns.
func (r *Reader) Take(record []byte) []byte {
	if len(record) == 0 || len(r.record) == 0 || &record[0] != &r.record[0] {
		return bytes.Clone(record) // it is in the block
	}
	r.record = nil
	return record
}

func (r *Reader) next() ([]byte, error) {
	if err := r.open(); err != nil {
		return nil, err
	}
	for {
		f, err := r.fragment()
		if err != nil {
			return nil, err
		}
		record, done, err := r.take(f)
		if err != nil {
			return nil, err
		}
		r.off += f.size()
		if done {
			return record, nil
		}
	}
}

// take adds the fragment at r.off to what has been read. It reports done with the fragment that completes a record.
func (r *Reader) take(f fragment) (record []byte, done bool, err error) {
	begins := f.typ != typeMiddle && f.typ != typeLast
	switch {
	case begins && r.inside:
		return nil, false, r.misplaced(r.start, r.off, "log record without an end")
	case !begins && r.orphan:
		r.skipped += f.size()
		return nil, false, nil
	case !begins && !r.inside:
		return nil, false, r.misplaced(r.off, r.off+f.size(), "log record without a beginning")
	}
	switch f.typ {
	case typeSynced:
		r.synced = max(r.synced, f.synced())
		return nil, false, nil
	case typeEnd:
		return nil, false, r.end(f)
	case typeFull:
		r.start, r.orphan = r.off, false
		return f.payload, true, nil
	case typeFirst:
		r.start, r.orphan, r.inside = r.off, false, true
		r.record = append(r.record[:0], f.payload...)
		return nil, false, nil
	default:
		r.record = append(r.record, f.payload...)
		r.inside = f.typ == typeMiddle
		return r.record, f.typ == typeLast, nil
	}
}

// end handles the end of the log at r.off, which must be the end of the file.
func (r *Reader) end(f fragment) error {
	r.synced = max(r.synced, f.synced())
	if end := r.off + f.size(); end != r.size {
		r.off = end
		return r.misplaced(end, r.size, fmt.Sprintf("%d bytes after the end of the log", r.size-end))
	}
	r.clean = true
	return io.EOF
}

// fragment returns the next fragment, at r.off.
func (r *Reader) fragment() (fragment, error) {
	if room := roomAt(r.off); room == 0 && r.off < r.size {
		pad, err := r.load(r.off)
		if err != nil {
			return fragment{}, err
		}
		if !allZero(pad) {
			return fragment{}, r.damage(nextBlock(r.off), "log block: padding is not zero")
		}
		r.off = min(nextBlock(r.off), r.size)
	}
	if r.off >= r.size {
		if r.inside {
			return fragment{}, r.damage(r.size, "log record without an end")
		}
		return fragment{}, io.EOF
	}
	b, err := r.load(r.off)
	if err != nil {
		return fragment{}, err
	}
	f, ok := parseFragment(b, r.id, r.off)
	if !ok {
		what := faultOf(b)
		resume, err := r.resync(r.off)
		if err != nil {
			return fragment{}, err
		}
		return fragment{}, r.damage(resume, what)
	}
	return f, nil
}

// open reads the file's size and header, once.
func (r *Reader) open() error {
	if r.opened {
		return nil
	}
	size, err := r.r.Size()
	if err != nil {
		return fmt.Errorf("size of log %s: %w", r.name, err)
	}
	r.opened, r.size = true, size
	if size == 0 {
		return io.EOF
	}
	h, err := r.load(0)
	if err != nil {
		return err
	}
	h = h[:min(len(h), fileHeaderSize)]
	whole := appendFileHeader(nil, r.id)
	if !bytes.Equal(h, whole) && bytes.HasPrefix(whole, bytes.TrimRight(h, "\x00")) {
		return r.damage(fileHeaderSize, "log header: zeros, or cut short")
	}
	if err := checkFileHeader(h, r.name, r.id); err != nil {
		if errors.Is(err, base.ErrCorruption) {
			r.resume = fileHeaderSize
			if ioErr := r.lookAhead(); ioErr != nil {
				return ioErr
			}
		}
		return err
	}
	r.off = fileHeaderSize
	return nil
}

// load returns the bytes from an offset inside the file to the end of its block,
// or of the file. They are valid until the next load.
func (r *Reader) load(off int64) ([]byte, error) {
	start := off - off%blockSize
	if start != r.loaded {
		if r.block == nil {
			r.block = make([]byte, blockSize)
		}
		r.block = r.block[:min(blockSize, r.size-start)]
		r.loaded = start
		n, err := r.r.ReadAt(r.block, start)
		if n < len(r.block) {
			r.loaded = -1
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, fmt.Errorf("read log %s at offset %d: %w", r.name, start, err)
		}
	}
	return r.block[off-start:], nil
}

// Offset returns where in the file the last record begins that Next returned.
func (r *Reader) Offset() int64 { return r.start }

// Clean reports whether the end-of-log mark was read, as the last bytes of the file.
func (r *Reader) Clean() bool { return r.clean }

// SyncedTo returns an offset: the log proves that everything before it had been durable. It takes into account what
// Next has read and, once Next has met damage, all that follows.
func (r *Reader) SyncedTo() int64 { return r.synced }

// Skipped returns the number of bytes of the file that Skip dropped, and of later ones
// that belong to a record with a dropped beginning.
func (r *Reader) Skipped() int64 { return r.skipped }

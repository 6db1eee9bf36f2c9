package blob

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compression"
	"github.com/siftkv/siftkv/internal/vfs"
)

// ReaderOptions say which file it is.
type ReaderOptions struct {
	Name string // for errors
	Hint string // the command that looks further, for errors; may be empty
	ID   uint64 // of the file; not 0
	Size int64  // that the file had when it was written; 0: not known

	Unfinished bool // it has no footer: records may go up to its end

	Records uint64 // of the file, for Cache
	Cache   Cache  // for AppendCached
}

// A Reader reads values by their handles. Opening one reads nothing of the file, and it has nothing in memory but
// places for values in the cache. It is safe for concurrent use; Close must come last.
type Reader struct {
	file  io.ReaderAt
	now   vfs.NowReader // file, if it is one
	again vfs.Rereader  // file, if it is one
	far   bool          // each read is a request
	name  string
	hint  string
	id    uint64
	size  int64
	cache valueCache

	unfinished bool // size has a footer that is not there
}

// NewReader returns a reader of a file of size bytes. If f is an io.Closer, Close closes it; after an error it is left
// open.
func NewReader(f io.ReaderAt, size int64, o ReaderOptions) (*Reader, error) {
	r := &Reader{file: f, name: o.Name, hint: o.Hint, id: o.ID, size: size}
	if r.unfinished = o.Unfinished; o.Unfinished {
		size += footerSize
		r.size = size
	}
	r.cache.Cache, r.cache.records, r.cache.id = o.Cache, o.Records, o.ID
	r.again, _ = f.(vfs.Rereader)
	_, r.far = f.(vfs.PartReader)
	r.now, _ = f.(vfs.NowReader)
	switch {
	case size < MinSize:
		return nil, r.corrupt(0, fmt.Errorf("the file has %d bytes, one without values has %d", size, MinSize))
	case o.Size != 0 && o.Size != size:
		return nil, r.corrupt(min(size, o.Size), fmt.Errorf("the file had %d bytes when it was written and has %d now",
			o.Size, size))
	}
	return r, nil
}

// ID returns the file's id.
func (r *Reader) ID() uint64 { return r.id }

// Close closes the file, and takes its values out of the cache.
func (r *Reader) Close() error {
	r.cache.close()
	if c, ok := r.file.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// corrupt returns an error that names the file and the place.
func (r *Reader) corrupt(offset int64, cause error) error {
	return &base.CorruptionError{File: r.name, Offset: offset, What: "large value", Cause: cause, Hint: r.hint}
}

func (r *Reader) readFull(b []byte, offset int64) error {
	if r.ReadNow(b, offset) == vfs.NowDone {
		return nil
	}
	return r.readIn(r.file, b, offset)
}

func (r *Reader) readIn(f io.ReaderAt, b []byte, offset int64) error {
	n, err := f.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return r.corrupt(offset, io.ErrUnexpectedEOF) // it was longer when it was opened
	}
	return fmt.Errorf("siftkv: read %s at offset %d: %w", r.name, offset, err)
}

// readChecked reads len(b) bytes at offset, which have to pass check. Remote bytes are read once again, past all
// caches, before it returns that they are damaged.
func (r *Reader) readChecked(b []byte, offset int64, check func() error) error {
	err := r.readFull(b, offset)
	if err == nil {
		err = check()
	}
	if err == nil || r.again == nil || !errors.Is(err, base.ErrCorruption) {
		return err
	}
	if err := r.readIn(vfs.AgainFile{Rereader: r.again}, b, offset); err != nil {
		return err
	}
	return check()
}

var errOutside = errors.New("the record is not in the file")

// admits checks that a handle may be one of the file.
func (r *Reader) admits(h Handle) error {
	if h.Offset < headerSize || h.Length < MinRecord || h.Length > maxRecord ||
		h.Length > r.size-footerSize-h.Offset {
		return r.corrupt(h.Offset, errOutside)
	}
	return nil
}

// scratches are buffers of reads into memory that is not the caller's.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

const (
	maxPooled = 1 << 20 // bytes of the longest scratch that is kept
	// maxCopied is bytes of the longest record of which the value is copied for a caller without memory.
	maxCopied = 64 << 10
)

// AppendValue appends to dst the value of key that a handle leads to, with one read, or, of a long value, with some. It
// returns dst as it was with an error that matches base.ErrCorruption if there is another record, or a damaged one. It
// allocates nothing if dst has room, up to 1 MiB. What dst's memory has behind the value stays as it is.
//
// So the record is read into other memory and the value copied: of 16 KB that takes as long as to clear the memory of a
// value that is read in its place. Longer ones for a caller without memory are read in their place, which is then
// longer than the value.
func (r *Reader) AppendValue(dst, key []byte, h Handle) ([]byte, error) {
	if err := r.admits(h); err != nil {
		return dst, err
	}
	n := int(h.Length)
	if h.Length >= h.Size { // else it is compressed
		switch {
		case dst == nil && n > maxCopied:
			return r.ownValue(key, h)
		case n > maxPooled && !r.far:
			return r.appendPieces(dst, key, h)
		}
	}
	scratch := scratches.Get().(*[]byte)
	defer keepScratch(scratch)
	*scratch = slices.Grow((*scratch)[:0], n)
	p, stored, err := r.read((*scratch)[:n], key, h)
	switch {
	case err != nil:
		return dst, err
	case p.Compression != compression.None:
		return r.decode(dst, p, stored, h)
	}
	return append(dst, stored...), nil
}

// ownValue returns a value in the memory into which its record is read.
func (r *Reader) ownValue(key []byte, h Handle) ([]byte, error) {
	p, stored, err := r.read(make([]byte, h.Length), key, h)
	if err == nil && p.Compression != compression.None {
		return r.decode(nil, p, stored, h)
	}
	return stored, err
}

// appendPieces is AppendValue that has no more than a piece in other memory.
func (r *Reader) appendPieces(dst, key []byte, h Handle) ([]byte, error) {
	s, err := r.OpenStream(key, h)
	if err != nil {
		return dst, err
	}
	if s.record.Compression != compression.None {
		value, err := s.decoded()
		return append(dst, value...), err
	}
	out := slices.Grow(dst, int(h.Size))
	for s.left > 0 {
		piece, err := s.nextPiece()
		if err != nil {
			return dst, err
		}
		out = append(out, piece...)
	}
	return out, nil
}

// keepScratch gives a scratch back, unless it is so long that others would never need it.
func keepScratch(scratch *[]byte) {
	if cap(*scratch) <= maxPooled {
		scratches.Put(scratch)
	}
}

// read reads a record into b, which has its length, and checks all of it. The value as it is stored is in b.
func (r *Reader) read(b, key []byte, h Handle) (p prefix, stored []byte, err error) {
	err = r.readChecked(b, h.Offset, func() (err error) {
		p, stored, err = r.checked(b, key, h)
		return err
	})
	return p, stored, err
}

// checked checks all of a record. The value as it is stored is in b.
func (r *Reader) checked(b, key []byte, h Handle) (p prefix, stored []byte, err error) {
	if p, err = r.head(b, key, h); err != nil {
		return p, nil, err
	}
	at := p.valueAt()
	if stored, err = joinPieces(b[at:], r.id, h.Offset+int64(at)); err != nil {
		err = r.corrupt(h.Offset, err)
	}
	return p, stored, err
}

// head decodes the beginning of a record, and checks that it is the one that a handle of key means.
func (r *Reader) head(b, key []byte, h Handle) (prefix, error) {
	p, err := decodePrefix(b)
	if err == nil && p.valueAt() > len(b) {
		err = errRecord
	}
	if err == nil {
		err = p.check(b, r.id, h.Offset)
	}
	switch {
	case err != nil:
	case !bytes.Equal(p.Key, key):
		err = fmt.Errorf("the record is of key %q, and its handle of %q", p.Key, key)
	case p.length != h.Length || p.Size != h.Size:
		err = fmt.Errorf("the record has %d bytes and a value of %d, its handle says %d and %d", p.length, p.Size,
			h.Length, h.Size)
	default:
		return p, nil
	}
	return prefix{}, r.corrupt(h.Offset, err)
}

// decode appends a compressed value, which is not in dst's memory, to dst.
func (r *Reader) decode(dst []byte, p prefix, stored []byte, h Handle) ([]byte, error) {
	end := len(dst) + int(p.Size)
	value, err := p.decode(slices.Grow(dst, int(p.Size))[len(dst):len(dst):end], stored)
	if err != nil {
		return dst, r.corrupt(h.Offset, err)
	}
	return append(dst, value...), nil
}

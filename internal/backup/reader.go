package backup

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
)

// A Reader reads a stream and checks every byte of it. It never reads past the
// stream's end, so that streams may follow one another.
//
// Errors about damage match base.ErrCorruption; a stream that breaks off gives io.ErrUnexpectedEOF.
type Reader struct {
	r      io.Reader
	header Header
	whole  bool // the stream was read from its beginning
	offset int64
	left   int64 // bytes of the open file that are to come
	files  uint64
	bytes  int64
	desc   []byte // what was read of the description
	ended  bool
	frame  []byte
}

// streamName is what errors call the stream.
const streamName = "the backup stream"

// NewReader begins to read. If r does not begin with a preamble, it may have what
// follows an offset in a stream: Started is false then, and Resume comes next.
func NewReader(r io.Reader) (*Reader, error) {
	br := &Reader{r: r}
	var b [preambleSize]byte
	n, err := io.ReadFull(r, b[:])
	ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	head := min(n, len(magic))
	if string(b[:head]) != magic[:head] && (err == nil || ended) {
		br.r = io.MultiReader(bytes.NewReader(b[:n]), r)
		return br, nil
	}
	if err != nil {
		return nil, br.ioError(err)
	}
	br.header, err = decodePreamble(b[:])
	if errors.Is(err, manifest.ErrNewerFormat) {
		return nil, err
	}
	if err != nil {
		return nil, br.corrupt(err)
	}
	br.offset = preambleSize
	t, payload, err := br.next()
	if err != nil {
		return nil, err
	}
	if t != typeHeader {
		return nil, br.corrupt(fmt.Errorf("%s where the header should be", t))
	}
	if err = br.header.decode(payload); err != nil {
		return nil, br.corrupt(err)
	}
	br.whole = true
	return br, nil
}

// Started reports whether the stream was read from its beginning, so that there is a header.
func (r *Reader) Started() bool { return r.whole }

// Resume says that r has what follows an offset in the stream of a backup: the end of a file.
func (r *Reader) Resume(id uint64, offset int64) { r.header.BackupID, r.offset = id, offset }

// Header returns the stream's header.
func (r *Reader) Header() Header { return r.header }

// Offset returns the offset after the last frame that was read.
func (r *Reader) Offset() int64 { return r.offset }

func (r *Reader) corrupt(cause error) error {
	return &base.CorruptionError{File: streamName, Offset: r.offset, What: "backup", Cause: cause}
}

func (r *Reader) ioError(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("siftkv: %s breaks off after offset %d: %w", streamName, r.offset, err)
}

// next reads a frame. The payload is valid until the next call.
func (r *Reader) next() (frameType, []byte, error) {
	if r.frame == nil {
		r.frame = make([]byte, 4<<10)
	}
	h := r.frame[:frameHeaderSize]
	if _, err := io.ReadFull(r.r, h); err != nil {
		return 0, nil, r.ioError(err)
	}
	n := binary.LittleEndian.Uint32(h[4:])
	if n > MaxPayload {
		return 0, nil, r.corrupt(fmt.Errorf("a frame of %d bytes", n))
	}
	size := frameHeaderSize + int(n)
	if cap(r.frame) < size {
		r.frame = append(make([]byte, 0, frameHeaderSize+MaxPayload), h...)
	}
	f := r.frame[:size]
	if _, err := io.ReadFull(r.r, f[frameHeaderSize:]); err != nil {
		return 0, nil, r.ioError(err)
	}
	if binary.LittleEndian.Uint32(f) != base.Checksum(r.header.BackupID, uint64(r.offset), f[4:]) {
		return 0, nil, r.corrupt(errors.New(
			"checksum does not match: a frame is damaged, or not what follows this offset of this backup"))
	}
	r.offset += int64(size)
	return frameType(f[8]), f[frameHeaderSize:], nil
}

// A Sent is a file in a stream.
type Sent struct {
	File
	Kind manifest.FileKind // FileTable or FileBlob
	Size int64
}

// NextFile goes on to the next file, over what is left of the one before. It returns false after the last.
func (r *Reader) NextFile() (f Sent, ok bool, err error) {
	for r.left > 0 {
		if _, err := r.Chunk(); err != nil {
			return f, false, err
		}
	}
	if r.ended {
		return f, false, nil
	}
	t, payload, err := r.next()
	if err != nil {
		return f, false, err
	}
	kind, isFile := kinds[t]
	if !isFile {
		return f, false, r.readDescription(t, payload)
	}
	if f, err = r.sent(kind, payload); err != nil {
		return Sent{}, false, r.corrupt(fmt.Errorf("%s: %w", t, err))
	}
	r.left = f.Size
	r.files++
	r.bytes += r.left
	return f, true, nil
}

// sent decodes the beginning of a file.
func (r *Reader) sent(kind manifest.FileKind, b []byte) (f Sent, err error) {
	if len(b) != fileSize {
		return f, errors.New("wrong length")
	}
	f = Sent{File: File{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}, Kind: kind,
		Size: int64(binary.LittleEndian.Uint64(b[16:]))}
	switch {
	case f.Size <= 0:
		err = errors.New("impossible size")
	case kind == manifest.FileBlob && r.whole && !r.header.HasBlobs:
		err = errors.New("a stream of version 1 has none")
	}
	return f, err
}

// Chunk returns the next bytes of the file, valid until the next call; nil at the file's end.
func (r *Reader) Chunk() ([]byte, error) {
	if r.left == 0 {
		return nil, nil
	}
	t, payload, err := r.next()
	if err != nil {
		return nil, err
	}
	if t != typeData || int64(len(payload)) > r.left || len(payload) == 0 {
		return nil, r.corrupt(fmt.Errorf("%s of %d bytes where %d bytes of a file are to come", t, len(payload),
			r.left))
	}
	r.left -= int64(len(payload))
	return payload, nil
}

// readDescription reads the description, of which t and payload are the first frame.
func (r *Reader) readDescription(t frameType, payload []byte) error {
	for {
		if t != typeDescription && t != typeEnd {
			return r.corrupt(fmt.Errorf("%s where a file or the description should be", t))
		}
		r.desc = append(r.desc, payload...)
		if t == typeEnd {
			break
		}
		var err error
		if t, payload, err = r.next(); err != nil {
			return err
		}
	}
	if r.whole && (r.files != r.header.Files || r.bytes != r.header.Bytes) {
		return r.corrupt(fmt.Errorf("the header promises %d files of %d bytes, there were %d of %d", r.header.Files,
			r.header.Bytes, r.files, r.bytes))
	}
	r.ended = true
	return nil
}

// Description returns the description of the store, once NextFile has returned false without an error.
func (r *Reader) Description() []byte { return r.desc }

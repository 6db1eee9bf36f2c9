package lookuptrace

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/siftkv/siftkv/internal/base"
)

// A Lookup is a record of a trace.
type Lookup struct {
	At    time.Duration // since Header.Start
	Key   []byte        // of the reader, until its next move; nil if the trace has hashes
	Hash  uint64        // keyed; 0 if the trace has keys
	Size  int           // bytes of the key
	Found bool          // the key was there
	Value bool          // its value was asked for, and not only whether it is there
}

// A Reader reads a trace from its beginning. It takes the memory of one frame.
type Reader struct {
	r      *bufio.Reader
	name   string
	header Header
	offset uint64 // of the next frame

	frame   []byte // payload of the frame that is being read
	place   uint64 // its offset
	kind    uint32
	rest    []byte // records of it that are still to come
	left    uint32 // how many
	at      uint64
	scan    Scan
	lookups uint64
	scans   uint64
	dropped uint64
	err     error // what Next returned, and returns again
}

// NewReader reads the header of a trace. The name is that of the file, for errors, which match base.ErrCorruption if
// bytes are damaged, or ErrNotTrace or ErrNewerFormat.
func NewReader(r io.Reader, name string) (*Reader, error) {
	t := &Reader{r: bufio.NewReaderSize(r, frameSize), name: name, offset: headerSize}
	head, err := t.r.Peek(headerSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	switch {
	case len(head) < len(magic) || string(head[:len(magic)]) != magic:
		return nil, fmt.Errorf("%s: %w", name, ErrNotTrace)
	case len(head) < headerSize:
		return nil, t.damage(0, "the file ends within the header")
	}
	if t.header, err = decodeHeader(head); errors.Is(err, ErrNewerFormat) {
		return nil, fmt.Errorf("%s: %w", name, err)
	} else if err != nil {
		return nil, t.damage(0, err.Error())
	}
	_, err = t.r.Discard(headerSize)
	return t, err
}

// Header says how the trace was made.
func (t *Reader) Header() Header { return t.header }

// Dropped returns how many lookups and scans are known to be missing, by what was read.
func (t *Reader) Dropped() uint64 { return t.dropped }

// Next returns the next lookup in the order of the file; times ascend within a
// frame only. Scans are passed over. At the end of the trace it returns io.EOF, and what matches
// ErrUnfinished if the end lacks. Damage matches base.ErrCorruption and ends reading.
func (t *Reader) Next() (Lookup, error) {
	for {
		if l, s, err := t.NextRecord(); err != nil || s == nil {
			return l, err
		}
	}
}

// NextRecord is Next that does not pass over scans: if the next record is one, it is
// returned in place of a lookup, and is the reader's until its next move.
func (t *Reader) NextRecord() (Lookup, *Scan, error) {
	for t.err == nil && t.left == 0 {
		t.err = t.nextFrame()
	}
	if t.err != nil {
		return Lookup{}, nil, t.err
	}
	var l Lookup
	var s *Scan
	var err error
	if t.kind == typeScans {
		s, err = t.decodeScan()
	} else {
		l, err = t.decode()
	}
	if err != nil {
		t.err = t.damage(t.place, err.Error())
		return Lookup{}, nil, t.err
	}
	return l, s, nil
}

func (t *Reader) nextFrame() error {
	if len(t.rest) > 0 {
		return t.damage(t.place, "bytes are left after the records of the frame")
	}
	t.place = t.offset
	var head [frameHeaderSize]byte
	if err := t.read(head[:]); err != nil {
		return err
	}
	if base.Checksum(t.header.ID, t.place, head[:12]) != binary.LittleEndian.Uint32(head[12:]) {
		return t.damage(t.place, "wrong checksum of a frame's header")
	}
	size, kind := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[4:])
	if size > maxPayload {
		return t.damage(t.place, fmt.Sprintf("a frame of %d bytes, above the limit of %d", size, maxPayload))
	}
	if t.frame == nil {
		t.frame = make([]byte, maxPayload)
	}
	payload := t.frame[:size]
	if err := t.read(payload); err != nil {
		return err
	}
	if base.Checksum(t.header.ID, t.place, payload) != binary.LittleEndian.Uint32(head[8:]) {
		return t.damage(t.place, "wrong checksum of a frame")
	}
	t.offset += frameHeaderSize + uint64(size)
	t.kind = kind
	switch {
	case kind == typeLookups, kind == typeScans && t.header.Version > 1:
		return t.openChunk(payload)
	case kind == typeEnd:
		return t.end(payload)
	}
	return t.damage(t.place, fmt.Sprintf("a frame of unknown type %d", kind))
}

// read fills b. A file that ends before is unfinished.
func (t *Reader) read(b []byte) error {
	_, err := io.ReadFull(t.r, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: %w", t.name, ErrUnfinished)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", t.name, err)
	}
	return nil
}

// openChunk begins with the records of a frame.
func (t *Reader) openChunk(b []byte) error {
	if len(b) < chunkHeaderSize {
		return t.damage(t.place, "a frame too small for records")
	}
	t.at = binary.LittleEndian.Uint64(b)
	t.dropped = max(t.dropped, binary.LittleEndian.Uint64(b[8:]))
	t.left = binary.LittleEndian.Uint32(b[16:])
	t.rest = b[chunkHeaderSize:]
	if t.left == 0 {
		return t.damage(t.place, "a frame without records")
	}
	return nil
}

// end checks the last frame, and that nothing follows.
func (t *Reader) end(b []byte) error {
	size := endSize
	if t.header.Version == 1 {
		size = endSizeV1
	}
	if len(b) != size {
		return t.damage(t.place, "the end has a wrong size")
	}
	if n := binary.LittleEndian.Uint64(b); n != t.lookups {
		return t.damage(t.place, fmt.Sprintf("the trace has %d lookups, and its end says %d", t.lookups, n))
	}
	if size == endSize {
		if n := binary.LittleEndian.Uint64(b[16:]); n != t.scans {
			return t.damage(t.place, fmt.Sprintf("the trace has %d scans, and its end says %d", t.scans, n))
		}
	}
	t.dropped = max(t.dropped, binary.LittleEndian.Uint64(b[8:]))
	switch _, err := t.r.ReadByte(); {
	case err == nil:
		return t.damage(t.offset, "bytes after the end")
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("read %s: %w", t.name, err)
	}
	return io.EOF
}

// decodeTime takes the time of a record from the frame.
func (t *Reader) decodeTime() (time.Duration, error) {
	delta, n := binary.Uvarint(t.rest)
	if n <= 0 || delta > math.MaxInt64 || t.at > math.MaxInt64-delta {
		return 0, errors.New("a record with an impossible time")
	}
	t.at += delta
	t.rest = t.rest[n:]
	return time.Duration(t.at), nil
}

func (t *Reader) decodeScan() (*Scan, error) {
	at, err := t.decodeTime()
	if err != nil {
		return nil, err
	}
	if t.scan, t.rest, err = decodeScan(t.rest, t.header.Keys); err != nil {
		return nil, err
	}
	t.scan.At = at
	t.left--
	t.scans++
	return &t.scan, nil
}

func (t *Reader) decode() (Lookup, error) {
	at, err := t.decodeTime()
	if err != nil {
		return Lookup{}, err
	}
	what, n := binary.Uvarint(t.rest)
	if n <= 0 || what>>2 > maxKeySize {
		return Lookup{}, errors.New("a lookup with an impossible key size")
	}
	l := Lookup{At: at, Size: int(what >> 2), Found: what&bitFound != 0, Value: what&bitValue != 0}
	size := l.Size
	if !t.header.Keys {
		size = hashSize
	}
	key := t.rest[n:]
	if len(key) < size {
		return Lookup{}, errors.New("a lookup that goes on past its frame")
	}
	if t.header.Keys {
		l.Key = key[:size:size]
	} else {
		l.Hash = binary.LittleEndian.Uint64(key)
	}
	t.rest = key[size:]
	t.left--
	t.lookups++
	return l, nil
}

// damage returns an error about bytes at an offset.
func (t *Reader) damage(offset uint64, what string) error {
	return base.Corruptf(t.name, int64(offset), "%s", what)
}

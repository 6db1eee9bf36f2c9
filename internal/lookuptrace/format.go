package lookuptrace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/internal/base"
)

// A trace begins with a header:
//
//	0   magic     8 bytes  "SIFTTRC\n"
//	8   version   u32      1
//	12  flags     u32      1: records have keys; 0: hashes in their place
//	16  id        u64      a random number of the trace
//	24  start     i64      wall clock at the beginning, microseconds since 1970 UTC
//	32  one in    u32      lookups of one key in so many were recorded; at least 1
//	36  checksum  u32      of bytes 0..35, at place (0, 0)
//
// and goes on in frames:
//
//	0   length    u32      of the payload, at most 128 KiB - 16
//	4   type      u8       1 lookups, 2 end
//	5   zero      3 bytes
//	8   checksum  u32      of the payload, at place (id, offset of the frame)
//	12  checksum  u32      of bytes 0..11, at place (id, offset of the frame)
//	16  payload
//
// A payload of lookups is
//
//	0   base      u64      when the first lookup ended, nanoseconds since the start
//	8   dropped   u64      lookups that were not recorded for lack of room until
//	                       the frame was written
//	16  count     u32      lookups, at least one
//	20  count lookups, each:
//	      delta   uvarint  nanoseconds since the one before; 0 for the first
//	      what    uvarint  4 x bytes of the key + 2 if its value was asked for, and
//	                       not only whether it is there + 1 if it is there
//	      key     the key, or 8 bytes: its hash
//
// Times ascend within a frame, but frames overlap. A hash is keyed with a number that is in no
// trace. The payload of the end, which is the last frame, is
//
//	0   recorded  u64      lookups in the trace
//	8   dropped   u64
//
// A trace without an end is that of a process that was killed, or of one that is
// still recording.

const (
	magic      = "SIFTTRC\n"
	version    = 1
	headerSize = 40
	flagKeys   = 1

	frameHeaderSize = 16
	chunkHeaderSize = 20
	frameSize       = 128 << 10 // at most
	maxPayload      = frameSize - frameHeaderSize
	endSize         = 16
	hashSize        = 8

	typeLookups = 1
	typeEnd     = 2

	bitFound = 1
	bitValue = 2

	// maxKeySize is that of package kv. A lookup with such a key fits into a frame.
	maxKeySize = 1<<16 - 1
)

// Errors of reading, besides those of the underlying reader.
var (
	// ErrNotTrace is returned for bytes that do not begin like a trace.
	ErrNotTrace = errors.New("not a lookup trace")
	// ErrNewerFormat is matched when a newer version wrote the trace.
	ErrNewerFormat = errors.New("the lookup trace has a newer format: read it with a newer version")
	// ErrUnfinished is matched by what Next returns in place of io.EOF for a trace
	// without an end. What was read until then is good.
	ErrUnfinished = errors.New("the lookup trace has no end: its process was killed, is still recording, " +
		"or the file was cut")
)

// A Header says how a trace was made.
type Header struct {
	ID    uint64
	Start time.Time // to the microsecond
	Keys  bool      // records have keys, not hashes
	OneIn uint32    // lookups of one key in so many were recorded
}

func (h Header) append(dst []byte) []byte {
	at := len(dst)
	flags := uint32(0)
	if h.Keys {
		flags = flagKeys
	}
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, version)
	dst = binary.LittleEndian.AppendUint32(dst, flags)
	dst = binary.LittleEndian.AppendUint64(dst, h.ID)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.Start.UnixMicro()))
	dst = binary.LittleEndian.AppendUint32(dst, h.OneIn)
	return binary.LittleEndian.AppendUint32(dst, base.Checksum(0, 0, dst[at:]))
}

// decodeHeader reads a header of headerSize bytes that begin with the magic.
func decodeHeader(b []byte) (Header, error) {
	if v := binary.LittleEndian.Uint32(b[8:]); v > version {
		return Header{}, fmt.Errorf("%w (it has version %d, this one reads up to %d)", ErrNewerFormat, v, version)
	}
	if base.Checksum(0, 0, b[:headerSize-4]) != binary.LittleEndian.Uint32(b[headerSize-4:]) {
		return Header{}, errors.New("header: wrong checksum")
	}
	flags := binary.LittleEndian.Uint32(b[12:])
	h := Header{
		ID: binary.LittleEndian.Uint64(b[16:]), Start: time.UnixMicro(int64(binary.LittleEndian.Uint64(b[24:]))).UTC(),
		Keys: flags&flagKeys != 0, OneIn: binary.LittleEndian.Uint32(b[32:]),
	}
	if binary.LittleEndian.Uint32(b[8:]) != version || flags&^uint32(flagKeys) != 0 || h.OneIn == 0 {
		return Header{}, errors.New("header: impossible values")
	}
	return h, nil
}

// sealFrame fills the header of a frame, whose payload follows it, for an offset.
func sealFrame(frame []byte, kind byte, id, offset uint64) {
	payload := frame[frameHeaderSize:]
	binary.LittleEndian.PutUint32(frame, uint32(len(payload)))
	binary.LittleEndian.PutUint32(frame[4:], uint32(kind)) // and three zeros
	binary.LittleEndian.PutUint32(frame[8:], base.Checksum(id, offset, payload))
	binary.LittleEndian.PutUint32(frame[12:], base.Checksum(id, offset, frame[:12]))
}

// A chunk is a frame of lookups in the making.
type chunk struct {
	data  []byte // frame header, chunk header, lookups
	count uint32
	last  uint64 // time of the last lookup
}

// newChunk returns a chunk with room for a whole frame.
func newChunk() *chunk { return &chunk{data: make([]byte, 0, frameSize)} }

// add appends a lookup that ended at a time not before that of the last one. It
// reports false, and appends nothing, if there is no room. Its key is either the
// key or 8 bytes of hash; size is that of the key.
func (c *chunk) add(at uint64, key []byte, size int, bits uint64) bool {
	if c.count == 0 {
		c.data = c.data[:frameHeaderSize+chunkHeaderSize]
		binary.LittleEndian.PutUint64(c.data[frameHeaderSize:], at)
		c.last = at
	}
	if cap(c.data)-len(c.data) < 2*binary.MaxVarintLen64+len(key) {
		return false
	}
	c.data = binary.AppendUvarint(c.data, at-c.last)
	c.data = binary.AppendUvarint(c.data, uint64(size)<<2|bits)
	c.data = append(c.data, key...)
	c.last = at
	c.count++
	return true
}

// seal makes the chunk a frame for an offset.
func (c *chunk) seal(id, offset, dropped uint64) []byte {
	binary.LittleEndian.PutUint64(c.data[frameHeaderSize+8:], dropped)
	binary.LittleEndian.PutUint32(c.data[frameHeaderSize+16:], c.count)
	sealFrame(c.data, typeLookups, id, offset)
	return c.data
}

// reset empties the chunk.
func (c *chunk) reset() { c.data, c.count, c.last = c.data[:0], 0, 0 }

// endFrame returns the last frame of a trace.
func endFrame(id, offset, recorded, dropped uint64) []byte {
	frame := make([]byte, frameHeaderSize+endSize)
	binary.LittleEndian.PutUint64(frame[frameHeaderSize:], recorded)
	binary.LittleEndian.PutUint64(frame[frameHeaderSize+8:], dropped)
	sealFrame(frame, typeEnd, id, offset)
	return frame
}

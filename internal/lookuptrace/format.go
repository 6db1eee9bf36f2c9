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
//	8   version   u32      2
//	12  flags     u32      1: records have keys; 0: hashes in their place
//	16  id        u64      a random number of the trace
//	24  start     i64      wall clock at the beginning, microseconds since 1970 UTC
//	32  one in    u32      n, at least 1: lookups of one key in n were recorded, and
//	                       scans that begin at one key in n
//	36  checksum  u32      of bytes 0..35, at place (0, 0)
//
// and goes on in frames:
//
//	0   length    u32      of the payload, at most 128 KiB - 16
//	4   type      u8       1 lookups, 2 end, 3 scans
//	5   zero      3 bytes
//	8   checksum  u32      of the payload, at place (id, offset of the frame)
//	12  checksum  u32      of bytes 0..11, at place (id, offset of the frame)
//	16  payload
//
// A payload of lookups is
//
//	0   base      u64      when the first lookup ended, nanoseconds since the start
//	8   dropped   u64      lookups and scans that were not recorded for lack of room
//	                       until the frame was written
//	16  count     u32      lookups, at least one
//	20  count lookups, each:
//	      delta   uvarint  nanoseconds since the one before; 0 for the first
//	      what    uvarint  4 x bytes of the key + 2 if its value was asked for, and
//	                       not only whether it is there + 1 if it is there
//	      key     the key, or 8 bytes: its hash
//
// A payload of scans has the same head, and count scans, each:
//
//	delta    uvarint  nanoseconds since the end of the one before; 0 for the first
//	what     uvarint  1 descending + 2 it has a start + 4 it has an end + 8 it came
//	                  to its end or the last key + 16 values were not asked for
//	entries  uvarint  that it came to
//	common   uvarint  bytes that start and end have in common, if it has both
//	start    if it has one: uvarint, its bytes; then the first 16384 of them,
//	         or 8 bytes: its hash
//	end      the same
//
// A scan that descends starts before its start. An end is the first key that does
// not belong to one that ascends, and the last that belongs to one that descends.
//
// Times ascend within a frame, but frames overlap. A hash is keyed with a number that is in no
// trace. The payload of the end, which is the last frame, is
//
//	0   lookups   u64      in the trace
//	8   dropped   u64      lookups and scans
//	16  scans     u64      in the trace
//
// Version 1 has no scans, and an end of 16 bytes.
//
// A trace without an end is of a process that was killed, or is still recording.

const (
	magic      = "SIFTTRC\n"
	version    = 2
	headerSize = 40
	flagKeys   = 1

	frameHeaderSize = 16
	chunkHeaderSize = 20
	frameSize       = 128 << 10 // at most
	maxPayload      = frameSize - frameHeaderSize
	endSize         = 24
	endSizeV1       = 16
	hashSize        = 8

	typeLookups = 1
	typeEnd     = 2
	typeScans   = 3

	bitFound = 1
	bitValue = 2

	bitBackward = 1
	bitStart    = 2
	bitEnd      = 4
	bitEnded    = 8
	bitKeysOnly = 16
	scanBits    = 1<<5 - 1

	// maxKeySize is that of package kv. A lookup with such a key fits into a frame.
	maxKeySize = 1<<16 - 1

	// maxBoundSize is what is kept of a start or end. Two of them fit into a frame.
	maxBoundSize = 16 << 10
	// maxBoundLen is the greatest length that a start or end is said to have.
	maxBoundLen = 1<<31 - 1
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
	Version uint32 // of the format; a recorder writes the newest
	ID      uint64
	Start   time.Time // to the microsecond
	Keys    bool      // records have keys, not hashes
	OneIn   uint32    // lookups of one key in OneIn were recorded
}

func (h Header) encode() []byte {
	flags := uint32(0)
	if h.Keys {
		flags = flagKeys
	}
	dst := binary.LittleEndian.AppendUint32([]byte(magic), h.Version)
	dst = binary.LittleEndian.AppendUint32(dst, flags)
	dst = binary.LittleEndian.AppendUint64(dst, h.ID)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.Start.UnixMicro()))
	dst = binary.LittleEndian.AppendUint32(dst, h.OneIn)
	return binary.LittleEndian.AppendUint32(dst, base.Checksum(0, 0, dst))
}

// decodeHeader reads a header of headerSize bytes that begin with the magic.
func decodeHeader(b []byte) (Header, error) {
	if base.Checksum(0, 0, b[:headerSize-4]) != binary.LittleEndian.Uint32(b[headerSize-4:]) {
		return Header{}, errors.New("header: wrong checksum")
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v > version {
		return Header{}, fmt.Errorf("%w (it has version %d, this one reads up to %d)", ErrNewerFormat, v, version)
	}
	flags := binary.LittleEndian.Uint32(b[12:])
	h := Header{
		Version: binary.LittleEndian.Uint32(b[8:]),
		ID:      binary.LittleEndian.Uint64(b[16:]),
		Start:   time.UnixMicro(int64(binary.LittleEndian.Uint64(b[24:]))).UTC(),
		Keys:    flags&flagKeys != 0, OneIn: binary.LittleEndian.Uint32(b[32:]),
	}
	if h.Version == 0 || flags&^uint32(flagKeys) != 0 || h.OneIn == 0 {
		return Header{}, errors.New("header: impossible values")
	}
	return h, nil
}

// sealFrame fills the header of a frame for an offset. The payload must follow the header.
func sealFrame(frame []byte, kind byte, id, offset uint64) {
	payload := frame[frameHeaderSize:]
	binary.LittleEndian.PutUint32(frame, uint32(len(payload)))
	binary.LittleEndian.PutUint32(frame[4:], uint32(kind)) // and three zeros
	binary.LittleEndian.PutUint32(frame[8:], base.Checksum(id, offset, payload))
	binary.LittleEndian.PutUint32(frame[12:], base.Checksum(id, offset, frame[:12]))
}

// endFrame returns the last frame of a trace.
func endFrame(id, offset, lookups, dropped, scans uint64) []byte {
	frame := make([]byte, frameHeaderSize+endSize)
	binary.LittleEndian.PutUint64(frame[frameHeaderSize:], lookups)
	binary.LittleEndian.PutUint64(frame[frameHeaderSize+8:], dropped)
	binary.LittleEndian.PutUint64(frame[frameHeaderSize+16:], scans)
	sealFrame(frame, typeEnd, id, offset)
	return frame
}

// Package envelope wraps what an application's filter writes, so that it may
// stand alone in a file, a database or a message, and be recognised, checked and
// read again.
//
//	magic      4 bytes  "SIFT"
//	family     u8       'b' bloom, 'l' blocked, 'n' counting, 's' scalable, 'c' cuckoo, 'q' quotient, 'i' immutable
//	version    u8       of the family's payload
//	zero       u16      0
//	length     u64      of the payload, in bytes
//	payload    length   the family's own layout
//	checksum   u32      CRC-32C (Castagnoli) of all bytes before it
//
// Integers are little-endian. The description stands before the payload, unlike
// that of a file's filter (package frame), so that a stream can be read without
// knowing where it ends. Envelopes may follow each other in one stream: reading
// takes exactly one.
package envelope

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
)

// The letters of the families are in stored bytes and never change.
const (
	Bloom     byte = 'b'
	Blocked   byte = 'l'
	Counting  byte = 'n'
	Scalable  byte = 's'
	Cuckoo    byte = 'c'
	Quotient  byte = 'q'
	Immutable byte = 'i'
)

const (
	magic       = "SIFT"
	headerLen   = 16
	checksumLen = 4

	// Overhead is what an envelope adds to its payload, in bytes.
	Overhead = headerLen + checksumLen
)

// ErrCorrupt is matched by every error about bytes that are not a sound envelope
// of the family that was asked for.
var ErrCorrupt = frame.ErrCorrupt

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Corruptf returns an error that matches ErrCorrupt and says what is wrong.
func Corruptf(format string, args ...any) error { return frame.Corruptf(format, args...) }

// Append appends the envelope of the payload, which may come in parts, to dst.
func Append(dst []byte, family, version byte, payload ...[]byte) []byte {
	start := len(dst)
	dst = appendHeader(dst, family, version, payload)
	for _, part := range payload {
		dst = append(dst, part...)
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

func appendHeader(dst []byte, family, version byte, payload [][]byte) []byte {
	length := 0
	for _, part := range payload {
		length += len(part)
	}
	dst = append(dst, magic...)
	dst = append(dst, family, version, 0, 0)
	return binary.LittleEndian.AppendUint64(dst, uint64(length))
}

// open checks every byte of data, which must be one envelope and nothing else,
// and returns the payload, a part of data. Whether the version is one that is
// read is for the caller to check.
func open(data []byte, family byte) (payload []byte, version byte, err error) {
	if len(data) < Overhead {
		return nil, 0, Corruptf("%d bytes are less than the %d of an empty one: the filter is cut short", len(data),
			Overhead)
	}
	h := (*header)(data)
	if err := h.check(family); err != nil {
		return nil, 0, err
	}
	if have := uint64(len(data) - Overhead); h.length() != have {
		return nil, 0, Corruptf("the payload has %d bytes, the header says %d: the filter is cut short or followed by other data", have, h.length())
	}
	end := len(data) - checksumLen
	if err := checkSum(crc32.Checksum(data[:end], castagnoli), data[end:]); err != nil {
		return nil, 0, err
	}
	return data[headerLen:end:end], h.version(), nil
}

// A header is the bytes before the payload.
type header [headerLen]byte

func (h *header) version() byte  { return h[5] }
func (h *header) length() uint64 { return binary.LittleEndian.Uint64(h[8:]) }

func (h *header) check(family byte) error {
	switch {
	case string(h[:4]) != magic:
		return Corruptf("no %q at the start: the bytes are not a filter", magic)
	case h[4] != family:
		return Corruptf("family is %q, want %q", h[4], family)
	case h[6] != 0 || h[7] != 0:
		return Corruptf("the header is damaged, or of a later program")
	}
	return nil
}

func checkSum(got uint32, stored []byte) error {
	if want := binary.LittleEndian.Uint32(stored); got != want {
		return Corruptf("checksum is %08x, the filter says %08x: it is damaged", got, want)
	}
	return nil
}

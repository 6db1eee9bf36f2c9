package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
)

// A set is stored in an envelope:
//
//	magic      4 bytes  "SIFT"
//	family     u8       'b' bloom, 'l' blocked, 'n' counting, 's' scalable, 'c' cuckoo, 'q' quotient, 'i' immutable
//	version    u8       of the family's payload
//	zero       u16      0
//	length     u64      of the payload, in bytes
//	payload    length   the family's own layout
//	checksum   u32      CRC-32C (Castagnoli) of all bytes before it
//
// Integers are little-endian. Unlike a footer, the description comes first, so that a stream can be read without
// knowing where it ends. Envelopes may follow each other in one stream: reading takes exactly one.
const (
	setMagic    = "SIFT"
	headerLen   = 16
	checksumLen = 4

	// Overhead is what an envelope adds to its payload, in bytes.
	Overhead = headerLen + checksumLen
)

// An Envelope is how the sets of one family are stored. Its methods do what a set's own methods of encoding do, except
// for the two things in which families differ: the payload, in parts, and the function that makes a set of a payload.
type Envelope struct {
	Family  Family
	Version byte   // of the payload; sets of another one are refused
	Made    string // the function that makes a set, for error messages

	// MaxPayload is the most bytes that a payload has, where a family knows; 0 means any number.
	MaxPayload uint64
}

// Append appends a stored set to dst. A zero set, which has no parts, is refused, and dst returned
// as it is: writing it would lose keys.
func (e Envelope) Append(dst []byte, parts [][]byte) ([]byte, error) {
	if parts == nil {
		return dst, e.zero()
	}
	start := len(dst)
	dst = e.appendHeader(dst, parts)
	for _, part := range parts {
		dst = append(dst, part...)
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli)), nil
}

func (e Envelope) appendHeader(dst []byte, parts [][]byte) []byte {
	length := 0
	for _, part := range parts {
		length += len(part)
	}
	dst = append(dst, setMagic...)
	dst = append(dst, byte(e.Family), e.Version, 0, 0)
	return binary.LittleEndian.AppendUint64(dst, uint64(length))
}

func (e Envelope) zero() error {
	return fmt.Errorf("filterpolicy: a zero set cannot be written; make it with %s", e.Made)
}

// Write writes a stored set to w, without a copy of its parts, and returns the number of bytes
// written. A set without parts is refused.
func (e Envelope) Write(w io.Writer, parts [][]byte) (n int64, err error) {
	if parts == nil {
		return 0, e.zero()
	}
	sum := uint32(0)
	head := e.appendHeader(make([]byte, 0, headerLen), parts)
	for _, part := range append([][]byte{head}, parts...) {
		sum = crc32.Update(sum, castagnoli, part)
		if n, err = write(w, n, part); err != nil {
			return n, err
		}
	}
	return write(w, n, binary.LittleEndian.AppendUint32(nil, sum))
}

func write(w io.Writer, before int64, p []byte) (n int64, err error) {
	m, err := w.Write(p)
	if err == nil && m < len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		err = fmt.Errorf("filterpolicy: writing a filter: %w", err)
	}
	return before + int64(m), err
}

// Unmarshal checks data, which must be one stored set and nothing else, and gives a copy of its
// payload to load, which may keep it. An error that is not one of load matches ErrCorrupt.
func (e Envelope) Unmarshal(data []byte, load func(payload []byte) error) error {
	payload, version, err := openEnvelope(data, e.Family)
	if err == nil {
		err = e.check(version)
	}
	if err != nil {
		return err
	}
	return load(bytes.Clone(payload))
}

// Read reads one stored set from r, up to its end and not beyond, and gives its payload to load, which may keep it. n
// is the number of bytes taken from r, with an error too. Memory grows with what is read, not with what a header
// promises. An error that is not one of r or load matches ErrCorrupt.
func (e Envelope) Read(r io.Reader, load func(payload []byte) error) (n int64, err error) {
	most := e.MaxPayload
	if most == 0 {
		most = math.MaxUint64
	}
	payload, version, n, err := readFrom(r, e.Family, most)
	if err == nil {
		err = e.check(version)
	}
	if err != nil {
		return n, err
	}
	return n, load(payload)
}

func (e Envelope) check(version byte) error {
	if version != e.Version {
		return Corruptf("version is %d; this program reads version %d", version, e.Version)
	}
	return nil
}

// openEnvelope checks every byte of data, which must be one envelope and nothing else, except the
// version. It returns the payload, a part of data.
func openEnvelope(data []byte, family Family) (payload []byte, version byte, err error) {
	if len(data) < Overhead {
		return nil, 0, Corruptf("%d bytes are less than the %d of an empty one: the filter is cut short", len(data),
			Overhead)
	}
	h := (*header)(data)
	if err := h.check(family); err != nil {
		return nil, 0, err
	}
	if have := uint64(len(data) - Overhead); h.length() != have {
		return nil, 0, Corruptf("the payload has %d bytes, the header says %d: the filter is cut short or followed by "+
			"other data", have, h.length())
	}
	end := len(data) - checksumLen
	if err := checkSum(crc32.Checksum(data[:end], castagnoli), data[end:]); err != nil {
		return nil, 0, err
	}
	return data[headerLen:end:end], h.version(), nil
}

// firstRead is the memory that a payload gets before any of it has been read. Then it doubles: a
// false header costs at most this, or twice what follows it.
const firstRead = 64 << 10

// readFrom reads one envelope from r, up to its end and not beyond, and returns its payload, which is the caller's. n
// is the number of bytes taken from r, with an error too. A payload of more than maxPayload bytes is refused before it
// is read. An error of r is returned as it is, wrapped; any other error matches ErrCorrupt.
func readFrom(r io.Reader, family Family, maxPayload uint64) (payload []byte, version byte, n int64, err error) {
	var h header
	if n, err = readFull(r, n, h[:]); err != nil {
		return nil, 0, n, err
	}
	if err := h.check(family); err != nil {
		return nil, 0, n, err
	}
	if most := min(maxPayload, math.MaxInt-Overhead); h.length() > most {
		return nil, 0, n, Corruptf("the header says %d bytes, more than the %d that a filter may have here",
			h.length(), most)
	}
	for length := int(h.length()); len(payload) < length; {
		done := len(payload)
		more := min(length-done, max(done, firstRead))
		payload = slices.Grow(payload, more)[:done+more]
		if n, err = readFull(r, n, payload[done:]); err != nil {
			return nil, 0, n, err
		}
	}
	var stored [checksumLen]byte
	if n, err = readFull(r, n, stored[:]); err != nil {
		return nil, 0, n, err
	}
	sum := crc32.Update(crc32.Checksum(h[:], castagnoli), castagnoli, payload)
	if err := checkSum(sum, stored[:]); err != nil {
		return nil, 0, n, err
	}
	return payload, h.version(), n, nil
}

func readFull(r io.Reader, before int64, p []byte) (n int64, err error) {
	m, err := io.ReadFull(r, p)
	n = before + int64(m)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return n, Corruptf("the stream ends after %d bytes: the filter is cut short", n)
	}
	return n, fmt.Errorf("filterpolicy: reading a filter: %w", err)
}

// A header is the bytes before the payload.
type header [headerLen]byte

func (h *header) version() byte  { return h[5] }
func (h *header) length() uint64 { return binary.LittleEndian.Uint64(h[8:]) }

func (h *header) check(family Family) error {
	switch {
	case string(h[:4]) != setMagic:
		return Corruptf("no %q at the start: the bytes are not a filter", setMagic)
	case Family(h[4]) != family:
		return Corruptf("family is %q, want %q", h[4], byte(family))
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

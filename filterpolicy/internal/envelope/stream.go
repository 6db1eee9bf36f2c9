package envelope

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
)

// writeTo writes the envelope of the payload, which may come in parts, to w,
// without a copy of it. It returns the number of bytes written.
func writeTo(w io.Writer, family, version byte, payload ...[]byte) (n int64, err error) {
	head := appendHeader(make([]byte, 0, headerLen), family, version, payload)
	sum := uint32(0)
	for _, part := range append([][]byte{head}, payload...) {
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

// firstRead is the memory that a payload gets before any of it has been read.
// From there it doubles: a header that lies costs at most this, or twice what
// follows it.
const firstRead = 64 << 10

// readFrom reads one envelope from r, up to its end and not beyond, and returns
// its payload, which is the caller's. n is the number of bytes taken from r,
// with an error too. A payload of more than maxPayload bytes is refused before
// it is read. An error of r is returned as it is, wrapped; any other error
// matches ErrCorrupt.
func readFrom(r io.Reader, family byte, maxPayload uint64) (payload []byte, version byte, n int64, err error) {
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

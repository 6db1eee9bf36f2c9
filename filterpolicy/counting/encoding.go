package counting

import (
	"encoding/binary"
	"io"
	"math"
	"math/bits"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/sizing"
)

// A set is written as an envelope of family 'n', version 1, whose payload is
//
//	keys      u64   keys added less keys removed
//	capacity  u64   keys that the set was made for
//	slice     u64   counters per slice
//	probes    u8    1 to 44, as many as slices
//	width     u8    bits per counter: 4 or 8
//	zero      u48   0
//	counters  rest  slice*probes of them, slice after slice; of two in a byte the
//	                first is the low half, and a half that is left over is 0
//
// Probe i = 0..probes-1 of a hash h meets counter i*slice + (p * slice) >> 64,
// the product taken at 128 bits, where
//
//	p = round(mix(h) + i * 0x9e3779b97f4a7c15)
//	mix(h):   h ^= h>>32; h *= M; h ^= h>>29; h *= M; h ^= h>>32;  M = 0xd6e8feb86659fd93
//	round(z): z ^= z>>32; z *= M; z ^= z>>32
//
// in arithmetic that wraps at 64 bits.
var format = frame.Envelope{Family: frame.Counting, Version: 1, Made: "counting.New"}

const headLen = 32

// parts returns the payload; the counters are the set's own. A zero set has none.
func (s *Set) parts() [][]byte {
	if s.probes == 0 {
		return nil
	}
	width := uint64(8)
	if s.counters.narrow {
		width = 4
	}
	head := binary.LittleEndian.AppendUint64(make([]byte, 0, headLen), uint64(s.keys))
	head = binary.LittleEndian.AppendUint64(head, uint64(s.capacity))
	head = binary.LittleEndian.AppendUint64(head, s.slice)
	return [][]byte{binary.LittleEndian.AppendUint64(head, uint64(s.probes)|width<<8), s.counters.cells}
}

// load keeps payload.
func (s *Set) load(payload []byte) error {
	if len(payload) < headLen {
		return frame.Corruptf("%d bytes are not a counting set", len(payload))
	}
	keys, capacity := binary.LittleEndian.Uint64(payload), binary.LittleEndian.Uint64(payload[8:])
	slice, shape := binary.LittleEndian.Uint64(payload[16:]), binary.LittleEndian.Uint64(payload[24:])
	probes, width := shape&0xff, shape>>8
	if keys > math.MaxInt/2 || capacity < 1 || capacity > sizing.MaxKeys || slice < 1 ||
		probes < 1 || probes > sizing.MaxProbes || (width != 4 && width != 8) {
		return frame.Corruptf("a counting set of %d keys, made for %d, with %d slices of %d counters cannot be",
			keys, capacity, probes, slice)
	}
	c := counters{payload[headLen:], width == 4}
	hi, n := bits.Mul64(slice, probes)
	if hi != 0 || n > math.MaxInt || cellsLen(n, c.narrow) != uint64(len(c.cells)) {
		return frame.Corruptf("%d bytes do not hold %d slices of %d counters of %d bits", len(c.cells), probes,
			slice, width)
	}
	if c.narrow && n%2 != 0 && c.get(n) != 0 {
		return frame.Corruptf("the half byte after the last counter is not zero")
	}
	*s = Set{c, slice, int(probes), int(keys), int(capacity)}
	return nil
}

// MarshalBinary returns the set's bytes.
func (s *Set) MarshalBinary() ([]byte, error) { return format.Append(nil, s.parts()) }

// AppendBinary appends the set's bytes to dst.
func (s *Set) AppendBinary(dst []byte) ([]byte, error) { return format.Append(dst, s.parts()) }

// WriteTo writes the set's bytes to w, without a copy of them.
func (s *Set) WriteTo(w io.Writer) (n int64, err error) { return format.Write(w, s.parts()) }

// UnmarshalBinary makes s the set of data, which it checks and does not keep. An
// error matches filterpolicy.ErrCorrupt and leaves s as it was.
func (s *Set) UnmarshalBinary(data []byte) error { return format.Unmarshal(data, s.load) }

// ReadFrom makes s the set that it reads from r, up to the set's last byte. An error that is not
// one of r matches filterpolicy.ErrCorrupt; any leaves s as it was.
func (s *Set) ReadFrom(r io.Reader) (n int64, err error) { return format.Read(r, s.load) }

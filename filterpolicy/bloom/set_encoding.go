package bloom

import (
	"encoding/binary"
	"io"
	"math"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/sizing"
)

// A set is written as an envelope of family 'b', version 1, whose payload is
//
//	keys      u64   keys added that were new, or an estimate of them
//	capacity  u64   keys that the set was made for
//	probes    u32   1 to 44
//	zero      u32   0
//	cells     rest  a multiple of 8 bytes, at least 8; bit b is bit b%8 of byte b/8
//
// Probe i = 0..probes-1 of a hash h sets bit (p * bits) >> 64, the product taken at 128 bits, where bits is 8 times the
// bytes of cells and
//
//	p = round(mix(h) + i * 0x9e3779b97f4a7c15)
//	mix(h):   h ^= h>>32; h *= M; h ^= h>>29; h *= M; h ^= h>>32;  M = 0xd6e8feb86659fd93
//	round(z): z ^= z>>32; z *= M; z ^= z>>32
//
// in arithmetic that wraps at 64 bits. The bits are not those of a file's filter.
//
// Set and ConcurrentSet write the same bytes and read each other's.
var format = frame.Envelope{Family: frame.Bloom, Version: 1, Made: "bloom.New"}

const (
	setHeadLen  = 24
	cellsFactor = 8 // cells are a multiple of this many bytes
)

// parts returns the payload; the cells are the set's own. A zero set has none.
func (s *Set) parts() [][]byte {
	if s.probes == 0 {
		return nil
	}
	head := binary.LittleEndian.AppendUint64(make([]byte, 0, setHeadLen), uint64(s.keys))
	head = binary.LittleEndian.AppendUint64(head, uint64(s.capacity))
	return [][]byte{binary.LittleEndian.AppendUint64(head, uint64(s.probes)), s.cells}
}

// load keeps payload.
func (s *Set) load(payload []byte) error {
	if len(payload) < setHeadLen+cellsFactor || len(payload)%cellsFactor != 0 {
		return frame.Corruptf("%d bytes are not a bloom set", len(payload))
	}
	keys, capacity := binary.LittleEndian.Uint64(payload), binary.LittleEndian.Uint64(payload[8:])
	probes := binary.LittleEndian.Uint64(payload[16:])
	if keys > math.MaxInt/2 || capacity < 1 || capacity > sizing.MaxKeys || probes < 1 || probes > maxProbes {
		return frame.Corruptf("a bloom set of %d keys, made for %d, with %d probes cannot be", keys, capacity,
			probes)
	}
	*s = Set{payload[setHeadLen:], int(probes), int(keys), int(capacity)}
	return nil
}

// MarshalBinary returns the set's bytes.
func (s *Set) MarshalBinary() ([]byte, error) { return format.Append(nil, s.parts()) }

// AppendBinary appends the set's bytes to dst.
func (s *Set) AppendBinary(dst []byte) ([]byte, error) { return format.Append(dst, s.parts()) }

// WriteTo writes the set's bytes to w, without a copy of them.
func (s *Set) WriteTo(w io.Writer) (n int64, err error) { return format.Write(w, s.parts()) }

// UnmarshalBinary makes s the set of data, which it checks and does not keep. An error matches filterpolicy.ErrCorrupt
// and leaves s as it was.
func (s *Set) UnmarshalBinary(data []byte) error { return format.Unmarshal(data, s.load) }

// ReadFrom makes s the set that it reads from r, up to the set's last byte. An error that is not one of r matches
// filterpolicy.ErrCorrupt; any leaves s as it was.
func (s *Set) ReadFrom(r io.Reader) (n int64, err error) { return format.Read(r, s.load) }

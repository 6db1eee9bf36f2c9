package bloom

import (
	"encoding/binary"
	"errors"
	"io"
	"math"

	"github.com/siftkv/siftkv/filterpolicy/internal/envelope"
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
// Probe i = 0..probes-1 of a hash h sets bit (p * bits) >> 64, the product taken
// at 128 bits, where bits is 8 times the bytes of cells and
//
//	p = round(mix(h) + i * 0x9e3779b97f4a7c15)
//	mix(h):   h ^= h>>32; h *= M; h ^= h>>29; h *= M; h ^= h>>32;  M = 0xd6e8feb86659fd93
//	round(z): z ^= z>>32; z *= M; z ^= z>>32
//
// in arithmetic that wraps at 64 bits. The bits are not those of a file's
// filter.
//
// Set and ConcurrentSet write the same bytes and read each other's.
const (
	setVersion  = 1
	setHeadLen  = 24
	cellsFactor = 8 // cells are a multiple of so many bytes
)

// errZero is the error of writing a zero set.
var errZero = errors.New("filterpolicy: a zero bloom set cannot be written; make it with New")

// A setHead is a set but for its cells.
type setHead struct {
	keys, capacity, probes int
}

func (h setHead) append(dst []byte) ([]byte, error) {
	if h.probes == 0 {
		return nil, errZero
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.keys))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.capacity))
	return binary.LittleEndian.AppendUint64(dst, uint64(h.probes)), nil
}

// parseSet splits a payload. The cells are a part of it.
func parseSet(payload []byte, version byte) (h setHead, cells []byte, err error) {
	if version != setVersion {
		return h, nil, envelope.Misversion(version, setVersion)
	}
	if len(payload) < setHeadLen+cellsFactor || len(payload)%cellsFactor != 0 {
		return h, nil, envelope.Corruptf("%d bytes are not a bloom set", len(payload))
	}
	keys, capacity := binary.LittleEndian.Uint64(payload), binary.LittleEndian.Uint64(payload[8:])
	probes := binary.LittleEndian.Uint64(payload[16:])
	if keys > math.MaxInt/2 || capacity < 1 || capacity > sizing.MaxKeys || probes < 1 || probes > maxProbes {
		return h, nil, envelope.Corruptf("a bloom set of %d keys, made for %d, with %d probes cannot be", keys, capacity, probes)
	}
	return setHead{int(keys), int(capacity), int(probes)}, payload[setHeadLen:], nil
}

func (s *Set) head() setHead { return setHead{s.keys, s.capacity, s.probes} }

// MarshalBinary returns the set's bytes.
func (s *Set) MarshalBinary() ([]byte, error) { return s.AppendBinary(nil) }

// AppendBinary appends the set's bytes to dst.
func (s *Set) AppendBinary(dst []byte) ([]byte, error) {
	head, err := s.head().append(nil)
	if err != nil {
		return dst, err
	}
	return envelope.Append(dst, envelope.Bloom, setVersion, head, s.cells), nil
}

// WriteTo writes the set's bytes to w, without a copy of them.
func (s *Set) WriteTo(w io.Writer) (n int64, err error) {
	head, err := s.head().append(nil)
	if err != nil {
		return 0, err
	}
	return envelope.WriteTo(w, envelope.Bloom, setVersion, head, s.cells)
}

// UnmarshalBinary makes s the set of data, which it checks and does not keep. An
// error matches filterpolicy.ErrCorrupt and leaves s as it was.
func (s *Set) UnmarshalBinary(data []byte) error {
	payload, version, err := envelope.Open(data, envelope.Bloom)
	if err != nil {
		return err
	}
	return s.load(append([]byte(nil), payload...), version)
}

// ReadFrom makes s the set that it reads from r, up to the set's last byte. An
// error that is not one of r matches filterpolicy.ErrCorrupt; any leaves s as it
// was.
func (s *Set) ReadFrom(r io.Reader) (n int64, err error) {
	payload, version, n, err := envelope.ReadFrom(r, envelope.Bloom, math.MaxUint64)
	if err != nil {
		return n, err
	}
	return n, s.load(payload, version)
}

// load keeps payload.
func (s *Set) load(payload []byte, version byte) error {
	h, cells, err := parseSet(payload, version)
	if err != nil {
		return err
	}
	*s = Set{cells: cells, probes: h.probes, keys: h.keys, capacity: h.capacity}
	return nil
}

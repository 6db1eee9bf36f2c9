package blocked

import (
	"encoding/binary"
	"io"
	"math"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/sizing"
)

// A set is written as an envelope of family 'l', version 1, whose payload is
//
//	lines     n*64 bytes  at least one line, laid out as in a file's filter
//	keys      u64         keys added that were new
//	capacity  u64         keys that the set was made for
//	probes    u64         1 to 14
//
// A hash h has the bits that mix(h) has in a file's filter, where
//
//	mix(h): h ^= h>>32; h *= M; h ^= h>>29; h *= M; h ^= h>>32;  M = 0xd6e8feb86659fd93
//
// in arithmetic that wraps at 64 bits. The lines come first so that they keep the alignment of the memory they are read
// into.
var format = frame.Envelope{Family: frame.Blocked, Version: 1, Made: "blocked.New"}

const setTailLen = 24

// parts returns the payload; the lines are the set's own. A zero set has none.
func (s *Set) parts() [][]byte {
	if len(s.cells) == 0 {
		return nil
	}
	tail := binary.LittleEndian.AppendUint64(make([]byte, 0, setTailLen), uint64(s.keys))
	tail = binary.LittleEndian.AppendUint64(tail, uint64(s.capacity))
	return [][]byte{s.cells, binary.LittleEndian.AppendUint64(tail, uint64(s.filter.probes))}
}

// load keeps payload.
func (s *Set) load(payload []byte) error {
	n := len(payload) - setTailLen
	if n < 0 {
		return frame.Corruptf("%d bytes are not a blocked set", len(payload))
	}
	lines, tail := payload[:n], payload[n:]
	keys, capacity := binary.LittleEndian.Uint64(tail), binary.LittleEndian.Uint64(tail[8:])
	made, err := ofParts(lines, binary.LittleEndian.Uint64(tail[16:]), keys, capacity)
	if err != nil {
		return err
	}
	*s = *made
	return nil
}

// ofParts returns the set that has the given parts, and keeps lines. It refuses what no set has.
func ofParts(lines []byte, probes, keys, capacity uint64) (*Set, error) {
	if len(lines) == 0 || len(lines)%LineLen != 0 {
		return nil, frame.Corruptf("%d bytes are not the lines of a blocked set, of %d bytes each", len(lines), LineLen)
	}
	if keys > math.MaxInt/2 || capacity < 1 || capacity > sizing.MaxKeys || probes < 1 || probes > MaxProbes {
		return nil, frame.Corruptf("a blocked set of %d keys, made for %d, with %d probes cannot be",
			int64(keys), int64(capacity), int64(probes))
	}
	return newSet(slices.Clip(lines), int(probes), int(keys), int(capacity)), nil
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

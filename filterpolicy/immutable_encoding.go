package filterpolicy

import (
	"encoding/binary"
	"io"
	"math"
	"strings"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
)

// A set is written as an envelope of family 'i', version 1, whose payload is
//
//	filter    n bytes  as in a file
//	spec      m bytes  the policy's
//	keys      u64      distinct keys
//	specLen   u32      m
//
// The filter comes first so that it keeps the alignment of the memory it is read into.
var setFormat = frame.Envelope{Family: frame.Immutable, Version: 1, Made: "filterpolicy.Build"}

const setTailLen = 12

// parts returns the payload; the filter is the set's own. A zero set has none.
func (s *Set) parts() [][]byte {
	if s.filter == nil {
		return nil
	}
	spec := s.policy.String()
	tail := binary.LittleEndian.AppendUint64([]byte(spec), uint64(s.keys))
	return [][]byte{s.data, binary.LittleEndian.AppendUint32(tail, uint32(len(spec)))}
}

// load keeps payload.
func (s *Set) load(payload []byte) error {
	n := len(payload) - setTailLen
	if n < 0 {
		return frame.Corruptf("%d bytes are not a set", len(payload))
	}
	keys, specLen := binary.LittleEndian.Uint64(payload[n:]), binary.LittleEndian.Uint32(payload[n+8:])
	if keys > math.MaxInt || uint64(specLen) > uint64(n) {
		return frame.Corruptf("a set of %d keys with a spec of %d bytes in %d cannot be", keys, specLen, n)
	}
	size := n - int(specLen)
	spec := string(payload[size:n])
	data := payload[:size:size]
	family, _, _ := strings.Cut(spec, ":")
	filter, err := Decode(family, data)
	if err != nil {
		return err
	}
	p, err := Parse(spec)
	if err != nil {
		return frame.Corruptf("the policy cannot be: %v", err)
	}
	if p.String() != spec {
		return frame.Corruptf("the policy is written %q, and must be %q", spec, p)
	}
	if salted, ok := p.(salted); ok && !salted.made(data) {
		return frame.Corruptf("the filter is not one of %q", spec)
	}
	*s = Set{p, filter, data, int(keys)}
	return nil
}

// MarshalBinary returns the set's bytes.
func (s *Set) MarshalBinary() ([]byte, error) { return setFormat.Append(nil, s.parts()) }

// AppendBinary appends the set's bytes to dst.
func (s *Set) AppendBinary(dst []byte) ([]byte, error) { return setFormat.Append(dst, s.parts()) }

// WriteTo writes the set's bytes to w, without a copy of them.
func (s *Set) WriteTo(w io.Writer) (n int64, err error) { return setFormat.Write(w, s.parts()) }

// UnmarshalBinary makes s the set of data, which it checks and does not keep. An error matches ErrCorrupt, or
// ErrUnknownFamily for a family that this program does not have, and leaves s as it was.
func (s *Set) UnmarshalBinary(data []byte) error { return setFormat.Unmarshal(data, s.load) }

// ReadFrom makes s the set that it reads from r, up to the set's last byte. An error that is not
// one of r is as those of UnmarshalBinary; any leaves s as it was.
func (s *Set) ReadFrom(r io.Reader) (n int64, err error) { return setFormat.Read(r, s.load) }

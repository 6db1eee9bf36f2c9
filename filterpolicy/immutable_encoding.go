package filterpolicy

import (
	"encoding/binary"
	"errors"
	"io"
	"math"

	"github.com/siftkv/siftkv/filterpolicy/internal/envelope"
)

// A set is written as an envelope of family 'i', version 1, whose payload is
//
//	filter    n bytes  as in a file
//	spec      m bytes  the policy's
//	keys      u64      distinct keys
//	specLen   u32      m
//
// The filter comes first so that it keeps the alignment of the memory it is read
// into.
const (
	setVersion = 1
	setTailLen = 12
)

// errZeroSet is the error of writing a zero set.
var errZeroSet = errors.New("filterpolicy: a zero set cannot be written; make it with Build")

func (s *Set) tail() ([]byte, error) {
	if s.filter == nil {
		return nil, errZeroSet
	}
	spec := s.policy.String()
	tail := binary.LittleEndian.AppendUint64([]byte(spec), uint64(s.keys))
	return binary.LittleEndian.AppendUint32(tail, uint32(len(spec))), nil
}

// load keeps payload.
func (s *Set) load(payload []byte, version byte) error {
	if version != setVersion {
		return envelope.Misversion(version, setVersion)
	}
	n := len(payload) - setTailLen
	if n < 0 {
		return envelope.Corruptf("%d bytes are not a set", len(payload))
	}
	keys, specLen := binary.LittleEndian.Uint64(payload[n:]), binary.LittleEndian.Uint32(payload[n+8:])
	if keys > math.MaxInt || uint64(specLen) > uint64(n) {
		return envelope.Corruptf("a set of %d keys with a spec of %d bytes in %d cannot be", keys, specLen, n)
	}
	size := n - int(specLen)
	spec := string(payload[size:n])
	p, err := Parse(spec)
	if err != nil {
		return envelope.Corruptf("the policy is not known here: %v", err)
	}
	if p.String() != spec {
		return envelope.Corruptf("the policy is written %q, and must be %q", spec, p)
	}
	data := payload[:size:size]
	filter, err := Decode(p.Name(), data)
	if err != nil {
		return err
	}
	*s = Set{p, filter, data, int(keys)}
	return nil
}

// MarshalBinary returns the set's bytes.
func (s *Set) MarshalBinary() ([]byte, error) { return s.AppendBinary(nil) }

// AppendBinary appends the set's bytes to dst.
func (s *Set) AppendBinary(dst []byte) ([]byte, error) {
	tail, err := s.tail()
	if err != nil {
		return dst, err
	}
	return envelope.Append(dst, envelope.Immutable, setVersion, s.data, tail), nil
}

// WriteTo writes the set's bytes to w, without a copy of them.
func (s *Set) WriteTo(w io.Writer) (n int64, err error) {
	tail, err := s.tail()
	if err != nil {
		return 0, err
	}
	return envelope.WriteTo(w, envelope.Immutable, setVersion, s.data, tail)
}

// UnmarshalBinary makes s the set of data, which it checks and does not keep. An
// error matches ErrCorrupt, for a policy that this program does not have too,
// and leaves s as it was.
func (s *Set) UnmarshalBinary(data []byte) error {
	payload, version, err := envelope.Open(data, envelope.Immutable)
	if err != nil {
		return err
	}
	return s.load(append([]byte(nil), payload...), version)
}

// ReadFrom makes s the set that it reads from r, up to the set's last byte. An
// error that is not one of r matches ErrCorrupt; any leaves s as it was.
func (s *Set) ReadFrom(r io.Reader) (n int64, err error) {
	payload, version, n, err := envelope.ReadFrom(r, envelope.Immutable, math.MaxUint64)
	if err != nil {
		return n, err
	}
	return n, s.load(payload, version)
}

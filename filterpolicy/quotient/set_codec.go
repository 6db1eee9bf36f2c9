package quotient

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy/internal/envelope"
)

// A set is written as an envelope of family 'q', version 1, whose payload is
//
//	quotients  u64   Q
//	values     u64   different values, each once in the blocks
//	counted    u64   values with further copies
//	bits       u8    R, 1 to 56
//	floor      u8    1 to 56; while R is above it, a full set doubles Q and takes 1 from R
//	zero       u48   0
//	blocks           as of a file's filter (see table.go), with the seed 0: at least
//	                 Q/64, rounded up, and more only as runs reach beyond them
//	copies           as many as counted says, ascending by value:
//	  value    u64
//	  further  u64   copies beside the one in the blocks, at least 1
//
// One set has one encoding.
const (
	setVersion = 1
	setHeadLen = 32
	copyLen    = 16
)

// errZero is the error of writing a zero set.
var errZero = errors.New("quotient: a zero set cannot be written; make it with New")

// MarshalBinary returns the encoded set. It fails for a zero set only.
func (s *Set) MarshalBinary() ([]byte, error) { return s.AppendBinary(nil) }

// AppendBinary appends the encoded set to dst.
func (s *Set) AppendBinary(dst []byte) ([]byte, error) {
	if s.quotients == 0 {
		return dst, errZero
	}
	return envelope.Append(dst, envelope.Quotient, setVersion, s.head(), s.cells, s.further()), nil
}

// WriteTo writes the encoded set to w without a copy of its table, and returns the
// number of bytes written.
func (s *Set) WriteTo(w io.Writer) (n int64, err error) {
	if s.quotients == 0 {
		return 0, errZero
	}
	return envelope.WriteTo(w, envelope.Quotient, setVersion, s.head(), s.cells, s.further())
}

// UnmarshalBinary makes s the set that was encoded as data, options included. It keeps no
// part of data. Any bytes are safe: they are taken only if they are what a set writes. An error matches the
// sentinel of corruption and leaves s as it was.
func (s *Set) UnmarshalBinary(data []byte) error {
	payload, version, err := envelope.Open(data, envelope.Quotient)
	if err != nil {
		return err
	}
	return s.decode(payload, version)
}

// ReadFrom is UnmarshalBinary for a stream, of which it reads one set and no byte
// beyond. It returns the number of bytes read. Memory grows with what was read, not with what
// a header promises.
func (s *Set) ReadFrom(r io.Reader) (n int64, err error) {
	payload, version, n, err := envelope.ReadFrom(r, envelope.Quotient, math.MaxUint64)
	if err != nil {
		return n, err
	}
	return n, s.decode(payload, version)
}

func (s *Set) head() []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, setHeadLen), s.quotients)
	b = binary.LittleEndian.AppendUint64(b, s.stored)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(s.extra)))
	return binary.LittleEndian.AppendUint64(b, s.bits|s.floor<<8)
}

func (s *Set) further() []byte {
	b := make([]byte, 0, copyLen*len(s.extra))
	for _, v := range slices.Sorted(maps.Keys(s.extra)) {
		b = binary.LittleEndian.AppendUint64(b, v)
		b = binary.LittleEndian.AppendUint64(b, s.extra[v])
	}
	return b
}

// decode makes s the set of a payload, of which it keeps nothing.
func (s *Set) decode(payload []byte, version byte) error {
	if version != setVersion {
		return envelope.Misversion(version, setVersion)
	}
	if len(payload) < setHeadLen {
		return envelope.Corruptf("%d bytes are not a quotient set", len(payload))
	}
	le := binary.LittleEndian
	quotients, stored, counted, shape := le.Uint64(payload), le.Uint64(payload[8:]), le.Uint64(payload[16:]), le.Uint64(payload[24:])
	bits, floor := shape&0xff, shape>>8
	if bits < mergedBits || bits > setBits || floor < mergedBits || floor > setBits ||
		quotients == 0 || quotients > math.MaxUint64>>bits {
		return envelope.Corruptf("no quotient set has parameters % x", payload[:setHeadLen])
	}
	rest := payload[setHeadLen:]
	if counted > uint64(len(rest))/copyLen {
		return envelope.Corruptf("%d bytes do not hold %d counts", len(rest), counted)
	}
	cells := rest[:uint64(len(rest))-counted*copyLen]
	t := table{cells, uint64(len(cells)) / blockLen(bits), quotients, bits}
	if uint64(len(cells))%blockLen(bits) != 0 || t.blocks < (quotients-1)/blockSlots+1 {
		return envelope.Corruptf("%d bytes do not hold %d quotients with remainders of %d bits", len(cells), quotients, bits)
	}
	d := Set{floor: floor, stored: stored}
	if err := d.decodeTable(&t); err != nil {
		return err
	}
	if err := d.decodeCopies(rest[len(cells):]); err != nil {
		return err
	}
	*s = d
	return nil
}

// decodeTable lists the values in a table that may hold anything, and takes it if a
// table of these values has the same bytes.
func (s *Set) decodeTable(t *table) error {
	n := uint64(0)
	values := func(yield func(uint64) bool) {
		for v := range (&Filter{table: *t}).All() {
			n++
			if !yield(v) {
				return
			}
		}
	}
	if err := s.rebuild(t.quotients, t.bits, values); err != nil || n != s.stored || s.stored > maxLen || !bytes.Equal(s.cells, t.cells) {
		return envelope.Corruptf("the blocks are not those of %d values in order", s.stored)
	}
	return nil
}

func (s *Set) decodeCopies(records []byte) error {
	for before := uint64(0); len(records) != 0; records = records[copyLen:] {
		v, further := binary.LittleEndian.Uint64(records), binary.LittleEndian.Uint64(records[8:])
		switch {
		case further == 0 || len(s.extra) != 0 && v <= before:
			return envelope.Corruptf("%d further copies of the value %d are out of order or none", further, v)
		case v >= s.values() || !s.has(v):
			return envelope.Corruptf("the value %d is counted but not there", v)
		case further > maxLen-s.stored-s.copies:
			return envelope.Corruptf("%d further copies are more than can be", further)
		}
		if s.extra == nil {
			s.extra = map[uint64]uint64{}
		}
		s.extra[v] = further
		s.copies += further
		before = v
	}
	return nil
}

package quotient

import (
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
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
//	  further  u64   copies besides the one in the blocks, at least 1
//
// One set has one encoding.
var format = frame.Envelope{Family: frame.Quotient, Version: 1, Made: "quotient.New"}

const (
	setHeadLen = 32
	copyLen    = 16
)

// parts returns the payload; the cells are the set's own. A zero set has none.
func (s *Set) parts() [][]byte {
	if s.table.quotients == 0 {
		return nil
	}
	return [][]byte{s.head(), s.table.cells, s.further()}
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

func (s *Set) head() []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, setHeadLen), s.table.quotients)
	b = binary.LittleEndian.AppendUint64(b, s.stored)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(s.extra)))
	return binary.LittleEndian.AppendUint64(b, s.table.bits|s.floor<<8)
}

func (s *Set) further() []byte {
	b := make([]byte, 0, copyLen*len(s.extra))
	for _, v := range slices.Sorted(maps.Keys(s.extra)) {
		b = binary.LittleEndian.AppendUint64(b, v)
		b = binary.LittleEndian.AppendUint64(b, s.extra[v])
	}
	return b
}

// load keeps nothing of payload.
func (s *Set) load(payload []byte) error {
	if len(payload) < setHeadLen {
		return frame.Corruptf("%d bytes are not a quotient set", len(payload))
	}
	le := binary.LittleEndian
	quotients, stored, counted, shape := le.Uint64(payload), le.Uint64(payload[8:]), le.Uint64(payload[16:]),
		le.Uint64(payload[24:])
	bits, floor := shape&0xff, shape>>8
	if bits < mergedBits || bits > setBits || floor < mergedBits || floor > setBits ||
		quotients == 0 || quotients > math.MaxUint64>>bits {
		return frame.Corruptf("no quotient set has parameters % x", payload[:setHeadLen])
	}
	rest := payload[setHeadLen:]
	if counted > uint64(len(rest))/copyLen {
		return frame.Corruptf("%d bytes do not hold %d counts", len(rest), counted)
	}
	cells := rest[:uint64(len(rest))-counted*copyLen]
	t := table{cells, uint64(len(cells)) / blockLen(bits), quotients, bits}
	if uint64(len(cells))%blockLen(bits) != 0 || t.blocks < (quotients-1)/blockSlots+1 {
		return frame.Corruptf("%d bytes do not hold %d quotients with remainders of %d bits", len(cells),
			quotients, bits)
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
		for v := range t.ascending() {
			n++
			if !yield(v) {
				return
			}
		}
	}
	if err := s.rebuild(t.quotients, t.bits, values); err != nil || n != s.stored || s.stored > maxLen ||
		!bytes.Equal(s.table.cells, t.cells) {
		return frame.Corruptf("the blocks are not those of %d values in order", s.stored)
	}
	return nil
}

func (s *Set) decodeCopies(records []byte) error {
	for before := uint64(0); len(records) != 0; records = records[copyLen:] {
		v, further := binary.LittleEndian.Uint64(records), binary.LittleEndian.Uint64(records[8:])
		switch {
		case further == 0 || len(s.extra) != 0 && v <= before:
			return frame.Corruptf("%d further copies of the value %d are out of order or none", further, v)
		case v >= s.table.values() || !s.table.has(v):
			return frame.Corruptf("the value %d is counted but not there", v)
		case further > maxLen-s.stored-s.copies:
			return frame.Corruptf("%d further copies are more than can be", further)
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

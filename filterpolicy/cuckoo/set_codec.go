package cuckoo

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy/internal/envelope"
)

// The payload of a set, version 1, in an envelope of package envelope; integers are
// little-endian:
//
//	bits     u8     F of the first table, 4 to 32
//	slots    u8     B: 2, 4 or 8
//	grow     u8     how many times larger the next table will be; 0: there will be none
//	guarded  u8     1 if a guard follows the tables, else 0
//	tables   u32    number of tables, at least 1; they follow, oldest first
//
// Each table:
//
//	buckets  u64    m, even
//	used     u64    slots in use
//	groups   u64    different classes, each a fingerprint and its pair of buckets
//	victim   u64    a bucket of the victim; 0 if there is none
//	value    u32    fingerprint of the victim; 0 if there is none
//	bits     u32    F of this table, not below the first table's and not another one's
//	extras   u64    number of classes that have copies kept aside
//	cells           as of a file's filter (see table.go), with the seed bits - first bits
//	classes         as many as extras says, ascending by bucket, then by fingerprint:
//	  bucket u64    the lower one of the pair
//	  value  u32    fingerprint
//	  copies u32    kept aside, at least 1
//
// The guard:
//
//	hashes   u64    number of hashes
//	guarded keys    as many as hashes says, ascending by hash:
//	  hash   u64
//	  copies u32    at least 1
const (
	setVersion  = 1
	headLen     = 8
	layerLen    = 48
	extraLen    = 16
	guardianLen = 12
)

// MarshalBinary returns the encoded set. It never fails.
func (s *Set) MarshalBinary() ([]byte, error) {
	return envelope.Append(nil, envelope.Cuckoo, setVersion, s.payload()...), nil
}

// WriteTo writes the encoded set to w without a copy of its tables, and returns
// the number of bytes written.
func (s *Set) WriteTo(w io.Writer) (int64, error) {
	return envelope.WriteTo(w, envelope.Cuckoo, setVersion, s.payload()...)
}

// UnmarshalBinary makes s the set that was encoded as data, options included. It
// keeps no part of data. Any bytes are safe; an error matches the sentinel of corruption and
// leaves s as it was.
func (s *Set) UnmarshalBinary(data []byte) error {
	payload, version, err := envelope.Open(data, envelope.Cuckoo)
	if err != nil {
		return err
	}
	return s.decode(bytes.Clone(payload), version)
}

// ReadFrom is UnmarshalBinary for a stream, of which it reads one set and no byte
// beyond. It returns the number of bytes read. Memory grows with what was read, not with what
// a header promises.
func (s *Set) ReadFrom(r io.Reader) (int64, error) {
	payload, version, n, err := envelope.ReadFrom(r, envelope.Cuckoo, math.MaxUint64)
	if err != nil {
		return n, err
	}
	return n, s.decode(payload, version)
}

// payload returns the parts of the encoded set; the cells are the set's own.
func (s *Set) payload() (parts [][]byte) {
	head := []byte{s.options.bits, s.options.slots, s.options.grow, 0}
	if s.guard != nil {
		head[3] = 1
	}
	parts = append(parts, binary.LittleEndian.AppendUint32(head, uint32(len(s.layers))))
	for i := range s.layers {
		l := &s.layers[i]
		parts = append(parts, l.head(), l.cells, l.aside())
	}
	if s.guard != nil {
		parts = append(parts, s.guard.encode())
	}
	return parts
}

func (l *layer) head() []byte {
	le := binary.LittleEndian
	b := le.AppendUint64(make([]byte, 0, layerLen), l.buckets)
	b = le.AppendUint64(b, l.used)
	b = le.AppendUint64(b, l.groups)
	b = le.AppendUint64(b, l.victim.i)
	b = le.AppendUint32(b, uint32(l.victim.fingerprint))
	b = le.AppendUint32(b, uint32(l.bits))
	return le.AppendUint64(b, uint64(len(l.extra)))
}

func (l *layer) aside() []byte {
	b := make([]byte, 0, extraLen*len(l.extra))
	for _, c := range slices.SortedFunc(maps.Keys(l.extra), class.compare) {
		b = binary.LittleEndian.AppendUint64(b, c.bucket)
		b = binary.LittleEndian.AppendUint32(b, uint32(c.fingerprint))
		b = binary.LittleEndian.AppendUint32(b, l.extra[c])
	}
	return b
}

func (c class) compare(d class) int {
	return cmp.Or(cmp.Compare(c.bucket, d.bucket), cmp.Compare(c.fingerprint, d.fingerprint))
}

func (g guard) encode() []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+guardianLen*len(g)), uint64(len(g)))
	for _, h := range slices.Sorted(maps.Keys(g)) {
		b = binary.LittleEndian.AppendUint64(b, h)
		b = binary.LittleEndian.AppendUint32(b, g[h])
	}
	return b
}

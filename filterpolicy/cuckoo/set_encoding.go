package cuckoo

import (
	"cmp"
	"encoding/binary"
	"io"
	"maps"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
)

// The payload of a set, version 1, in an envelope of package frame; integers are little-endian:
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
var format = frame.Envelope{Family: frame.Cuckoo, Version: 1, Made: "cuckoo.New"}

const (
	headLen     = 8
	layerLen    = 48
	extraLen    = 16
	guardianLen = 12
)

// parts returns the payload; the cells are the set's own. A zero set has none.
func (s *Set) parts() (parts [][]byte) {
	if len(s.layers) == 0 {
		return nil
	}
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

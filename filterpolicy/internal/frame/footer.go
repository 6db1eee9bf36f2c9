package frame

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// A filter's bytes are the family's cells and then a footer:
//
//	cells      n bytes  the family's own layout
//	keys       u64      hashes added, consecutive duplicates counted once; cut keys: distinct keys
//	units      u64      bloom: bits; blocked: lines; cuckoo: buckets; ribbon, quotient:
//	                    blocks of 64 slots; gcs: buckets; xor, fuse: cells;
//	                    cut keys: groups of 64 keys
//	seed       u32      which attempt at building succeeded; 0 where none can fail
//	params     4 bytes  bloom, blocked: probes, 0, 0, 0; cuckoo: fingerprint bits, slots, 1 if semi-sorted, 0;
//	                    ribbon: columns, layers, 0, 0; gcs: bits of a deviation, 0, 0, 0;
//	                    quotient: remainder bits, 0, 0, 0; xor: fingerprint bits, 0, 0, 0;
//	                    fuse: fingerprint bits, places per key, log2 of segment length, 0;
//	                    cut keys: bits beyond the cut, 0, 0, 0
//	magic      u16      "SF"
//	family     u8       'b' bloom, 'l' blocked, 'c' cuckoo, 'r' ribbon,
//	                    'g' gcs, 'q' quotient, 'x' xor, 'f' fuse, 'k' cut keys
//	version    u8       1
//	checksum   u32      CRC-32C (Castagnoli) of all bytes before it
//
// Integers are little-endian. The description comes after the cells so that these keep the
// alignment of the buffer they are read into: a 64-byte line of a blocked filter is then one cache
// line. A filter of no keys has no cells and no units; it is the footer alone.

// FooterLen is the length of the footer in bytes.
const FooterLen = 32

const (
	magic   = 'S' | 'F'<<8
	version = 1
)

// units names the units of a family's footer.
func (f Family) units() string {
	switch f {
	case Bloom:
		return "bits"
	case Blocked:
		return "lines"
	case Cuckoo, GCS:
		return "buckets"
	case CutKeys:
		return "groups"
	case Ribbon, Quotient:
		return "blocks"
	}
	return "cells"
}

// A Description is what a footer says of the cells before it.
type Description struct {
	Keys   uint64
	Units  uint64
	Seed   uint32
	Params uint32 // the first in the lowest byte
}

// Seal appends the footer to dst; the cells begin at start.
func (d Description) Seal(dst []byte, start int, family Family) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, d.Keys)
	dst = binary.LittleEndian.AppendUint64(dst, d.Units)
	dst = binary.LittleEndian.AppendUint32(dst, d.Seed)
	dst = binary.LittleEndian.AppendUint32(dst, d.Params)
	dst = binary.LittleEndian.AppendUint32(dst, tag(family))
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// tag is magic, family and version as the one word they are on disk.
func tag(family Family) uint32 { return magic | uint32(family)<<16 | version<<24 }

// A Footer is the footer's bytes, read in place.
type Footer [FooterLen]byte

// Keys returns the number of hashes added.
func (f *Footer) Keys() uint64 { return binary.LittleEndian.Uint64(f[0:]) }

// Units returns the number of units.
func (f *Footer) Units() uint64 { return binary.LittleEndian.Uint64(f[8:]) }

// Seed returns the seed.
func (f *Footer) Seed() uint32 { return binary.LittleEndian.Uint32(f[16:]) }

// Params returns the parameters, the first in the lowest byte.
func (f *Footer) Params() uint32 { return binary.LittleEndian.Uint32(f[20:]) }

func (f *Footer) tag() uint32      { return binary.LittleEndian.Uint32(f[24:]) }
func (f *Footer) checksum() uint32 { return binary.LittleEndian.Uint32(f[28:]) }

// Decode checks every byte of data and returns the family's view of it. view makes f a filter over
// the cells that cannot read out of bounds, or returns false if the footer does not fit them.
func Decode[F any](data []byte, family Family, view func(f *F, cells []byte, footer *Footer) bool) (*F, error) {
	cells, footer, err := open(data, family)
	if err != nil {
		return nil, err
	}
	f := new(F)
	if !view(f, cells, footer) {
		return nil, Corruptf("%d bytes do not hold %d %s with the parameters %#x", len(cells), footer.Units(),
			family.units(), footer.Params())
	}
	return f, nil
}

// open checks every byte of data, except what the numbers of the footer mean for the
// cells. It returns both parts of data.
func open(data []byte, family Family) (cells []byte, f *Footer, err error) {
	cells, f = Peek(data, family)
	if f == &noFooter {
		return nil, nil, misfit(data, family)
	}
	if got := crc32.Checksum(data[:len(data)-4], castagnoli); got != f.checksum() {
		return nil, nil, Corruptf("checksum is %08x, the footer says %08x: the filter is damaged", got, f.checksum())
	}
	if (f.Keys() == 0) != (f.Units() == 0) {
		return nil, nil, Corruptf("%d keys in %d units", f.Keys(), f.Units())
	}
	return cells, f, nil
}

// noFooter is the footer of bytes that have none. Its parameters are out of every
// family's bounds, so that no family's view takes it for a filter.
var noFooter = Footer(bytes.Repeat([]byte{0xff}, FooterLen))

// Peek returns the cells and their footer without checking the checksum. It is for callers that
// have a checksum of data and cannot afford another on every probe. For bytes without a footer of
// this family and version it returns no cells and a footer that no family accepts.
func Peek(data []byte, family Family) (cells []byte, f *Footer) {
	n := len(data) - FooterLen
	if n < 0 {
		return nil, &noFooter
	}
	f = (*Footer)(data[n:])
	if f.tag() != tag(family) {
		return nil, &noFooter
	}
	return data[:n:n], f
}

// misfit says why Peek refused data.
func misfit(data []byte, family Family) error {
	if len(data) < FooterLen {
		return Corruptf("%d bytes are less than the %d of a footer: the filter is cut short", len(data), FooterLen)
	}
	d := data[len(data)-FooterLen:]
	if binary.LittleEndian.Uint16(d[24:]) != magic {
		return Corruptf("no footer at the end: the bytes are cut short or are not a filter")
	}
	if got := Family(d[26]); got != family {
		return Corruptf("family is %q, want %q", byte(got), byte(family))
	}
	return Corruptf("version is %d; this program reads version %d", d[27], version)
}

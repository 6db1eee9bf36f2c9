// Package cuckootable is a cuckoo filter in many small tables, each of which is one Redis string.
//
// A table is a shard: it holds both buckets of each of its keys. So one command reads all that
// there is to know of a key, and one script changes it without touching another shard. The package
// says where keys lie (Shape, Place), reads them (Shape.Lookup, Copies), changes them (Op.Call,
// Answers) and builds shards outside Redis (Table). It keeps no connection and no state.
//
// # A shard
//
// All numbers are little-endian, except slots:
//
//	header    16 bytes: "sift", u8 version = 1, u8 kind = 2, u8 F, u8 slots of a bucket = 4,
//	          u32 buckets m, u32 tag
//	buckets   m * 4 * F bits: slot s of bucket i begins at bit (4*i + s) * F, the highest bit of the
//	          first byte being bit 0, the highest bit of a slot first; zero means empty
//	mark      8 bytes: the header's first 8 bytes again
//
// The bit order is that of BITFIELD. F is 8 to 32 and m is even, so a pair of buckets (2k, 2k+1)
// takes F whole bytes. That is the unit in which scripts read and write.
//
// The tag is the caller's: it says where the shard belongs, so that a shard that is found elsewhere is
// known. A shard with tag 0 may be anywhere.
//
// The mark is where only a whole shard of this shape has it. A lookup that reads it with the buckets
// knows that the string is there, is not shorter than it was made, and was made by us. A stray write
// to a missing key makes no mark. Scripts read it before they do anything, and do not write to a
// string without it.
//
// # A key
//
// A key is given by a 64-bit hash h:
//
//	z = mix(h)
//	shard = hi(z * shards), i = hi(lo(z * shards) * m)         hi and lo: the halves of 128 bits
//	fingerprint = 1 + hi32(lo32(mix(z)) * (2^F - 1))           of two 32-bit halves
//	j = (G - i) mod m
//	x = ((fingerprint mod 2^16) * 0x9e3779b1 + (fingerprint >> 16) * 0x85ebca6b) mod 2^32
//	G = (x * m) >> 32, made odd by setting its lowest bit
//	mix(h): h ^= h>>32; h *= M; h ^= h>>29; h *= M; h ^= h>>32;  M = 0xd6e8feb86659fd93
//
// G is odd and m is even, so i and j differ, and i = (G - j) mod m. No product in G exceeds 2^53, so
// that Lua, whose numbers are doubles, computes the same when a script moves a fingerprint to its
// other bucket. The pairing is that of the local cuckoo filter (filterpolicy/cuckoo), and so is the
// meaning: a table is a multiset of classes, a class being a fingerprint and a pair of buckets.
package cuckootable

import (
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	version      = 1
	kind         = 2 // a cuckoo shard; lines have another one
	slots        = 4 // of a bucket
	copies       = 2 * slots
	headerSize   = 16
	tagAt        = 12
	markSize     = 8
	minBits      = 8
	maxBits      = 32
	maxShardSize = 1 << 16
	maxShards    = 1 << 24
)

// A Shape is what all shards of a set have in common. It is stored as JSON in the set's
// configuration; use NewShape to choose one, and Check after reading one.
type Shape struct {
	Bits    uint32 `json:"bits"`    // F, the bits of a fingerprint
	Buckets uint32 `json:"buckets"` // m, the buckets of a shard
	Shards  uint32 `json:"shards"`
}

// ErrShape is returned for a shape that no set can have.
var ErrShape = errors.New("cuckootable: impossible shape")

// Check says what is wrong with a shape, nil if nothing is. The other methods need a shape that is in order.
func (s Shape) Check() error {
	switch {
	case s.Bits < minBits || s.Bits > maxBits:
		return fmt.Errorf("%w: fingerprints of %d bits, not of %d to %d", ErrShape, s.Bits, minBits, maxBits)
	case s.Buckets < 2 || s.Buckets%2 != 0:
		return fmt.Errorf("%w: %d buckets; there must be an even number of them, at least 2", ErrShape, s.Buckets)
	case s.Buckets > maxShardSize || s.Size() > maxShardSize:
		return fmt.Errorf("%w: a shard of %d buckets of %d bits is larger than %d bytes",
			ErrShape, s.Buckets, s.Bits*slots, maxShardSize)
	case s.Shards < 1 || s.Shards > maxShards:
		return fmt.Errorf("%w: %d shards, not 1 to %d", ErrShape, s.Shards, maxShards)
	}
	return nil
}

// Size returns the bytes of a shard.
func (s Shape) Size() int { return s.markAt() + markSize }

// Blank returns the bytes of an empty shard.
func (s Shape) Blank() []byte {
	shard := make([]byte, s.Size())
	copy(shard, s.mark())
	binary.LittleEndian.PutUint32(shard[8:], s.Buckets)
	copy(shard[s.markAt():], s.mark())
	return shard
}

// Tagged sets the tag of a shard, and returns the shard.
func Tagged(shard []byte, tag uint32) []byte {
	binary.LittleEndian.PutUint32(shard[tagAt:], tag)
	return shard
}

func (s Shape) markAt() int { return headerSize + int(s.Buckets)*slots*int(s.Bits)/8 }

func (s Shape) mark() []byte {
	return []byte{'s', 'i', 'f', 't', version, kind, byte(s.Bits), slots}
}

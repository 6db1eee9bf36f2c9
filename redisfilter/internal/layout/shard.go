// Package layout says how sets of lines lie in Redis: the names of keys, the bytes of a shard and its header, and
// what a line says of a key.
package layout

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
)

// A shard is one value in Redis, of 16 + 64*lines bytes:
//
//	"sift"      4 bytes
//	version     u8  1
//	kind        u8  1: a blocked filter
//	lines       u16 little-endian, as are all numbers
//	layers      u32 bit i is set when layer i+1 of the partition exists; only in layer 0
//	tag         u32 of the shard's key, see TagOf; 0 in a shard that an earlier release made
//	the lines   as those of a blocked.Set, except two bits
//
// Position 511 of each line is its mark. It is set in a shard that was made whole, and no key sets it: where a key
// has position 511, it uses 510. If a shard is lost and a key is then added, Redis makes a new value of zeros, which
// has no marks. So a reader of one line knows whether its zeros mean anything.
const (
	HeaderLen = 16
	LayersAt  = 8 // in the header
	TagAt     = 12
	Version   = 1
	Blocked   = 1

	MarkPosition = 511 // of the 512 positions of a line
	MarkBit      = 1 << (MarkPosition % 8)
	MarkByte     = MarkPosition / 8
)

// Blank returns a whole shard of no keys.
func (l Layer) Blank() []byte {
	data := make([]byte, l.Len())
	copy(data, "sift")
	data[4], data[5] = Version, Blocked
	binary.LittleEndian.PutUint16(data[6:], uint16(l.Lines))
	for at := HeaderLen; at < len(data); at += blocked.LineLen {
		data[at+MarkByte] = MarkBit
	}
	return data
}

// New is Blank for a key of Redis.
func (l Layer) New(key string) []byte {
	data := l.Blank()
	copy(data[TagAt:], TagBytes(key))
	return data
}

// TagOf returns a hash of the partition, generation, layer and shard that the key of a shard names. It is never 0. A
// shard that was copied, restored or renamed to another key has a tag that differs.
func TagOf(key string) uint32 {
	return max(1, uint32(xxhash.Sum64String(key[strings.LastIndexByte(key, '/')+1:])))
}

// TagBytes returns the tag of a key as it is in a header.
func TagBytes(key string) []byte { return binary.LittleEndian.AppendUint32(nil, TagOf(key)) }

// HasTag reports whether a shard with a tag may be that of a key.
func HasTag(tag uint32, key string) bool { return tag == 0 || tag == TagOf(key) }

// Owns reports whether some bytes begin the shard of l that belongs to a key.
func (l Layer) Owns(key string, data []byte) bool {
	return l.ValidHeader(data) && HasTag(binary.LittleEndian.Uint32(data[TagAt:]), key)
}

// ValidHeader reports whether some bytes begin a shard of l, of whatever key.
func (l Layer) ValidHeader(data []byte) bool {
	return len(data) >= HeaderLen && string(data[:4]) == "sift" && data[4] == Version && data[5] == Blocked &&
		int(binary.LittleEndian.Uint16(data[6:])) == l.Lines
}

// LayersOf returns the number of layers that a header of layer 0 tells of, from 1 to most.
func LayersOf(header []byte, most int) int {
	n := 1
	for set := binary.LittleEndian.Uint32(header[LayersAt:]); set&1 != 0 && n < most; set >>= 1 {
		n++
	}
	return n
}

// LayerBit is the offset, as Redis counts, of the bit that says that layer 1, 2, ... exists.
func LayerBit(layer int) int { return RedisBit(LayersAt*8 + layer - 1) }

// RedisBit converts a position that counts from each byte's lowest bit to one that counts from its highest.
func RedisBit(position int) int { return position ^ 7 }

// LineOffset is where a line begins in a shard, in bytes.
func LineOffset(line int) int { return HeaderLen + line*blocked.LineLen }

// BitPositions appends the positions of a key's bits in its line of a shard.
func BitPositions(dst []uint16, spot blocked.Spot, probes int) []uint16 {
	dst = spot.Bits(dst, probes)
	for i := range dst {
		dst[i] = min(dst[i], MarkPosition-1)
	}
	return dst
}

// SetBits sets the bits of a key in a line of a shard.
func SetBits(shard []byte, line int, spot blocked.Spot, probes int) {
	var room [blocked.MaxProbes]uint16
	at := shard[LineOffset(line):]
	for _, b := range BitPositions(room[:0], spot, probes) {
		at[b/8] |= 1 << (b % 8)
	}
}

// FoldMark turns a line of a local set into one of a shard that has no mark.
func FoldMark(line []byte) {
	line[MarkByte] |= line[MarkByte] & MarkBit >> 1 // position 510 serves 511 too
	line[MarkByte] &^= MarkBit
}

// UnfoldMark turns a line of a shard into one of a local set, which asks position 511 of keys that have it.
func UnfoldMark(line []byte) {
	line[MarkByte] &^= MarkBit
	line[MarkByte] |= line[MarkByte] << 1 & MarkBit
}

// An Answer is what a line says of a key.
type Answer uint8

// Answers.
const (
	Absent Answer = iota
	Present
	Lost // the line is not there, or was not made by us
)

// Ask returns what the bytes of a line say of a key.
func Ask(line []byte, spot blocked.Spot, probes int) Answer {
	if len(line) != blocked.LineLen {
		return Lost
	}
	var room [blocked.MaxProbes]uint16
	for _, p := range BitPositions(room[:0], spot, probes) {
		if line[p/8]&(1<<(p%8)) == 0 {
			if line[MarkByte]&MarkBit == 0 {
				return Lost
			}
			return Absent
		}
	}
	return Present
}

// ConfigKey is the key of a set's configuration.
func ConfigKey(name string) string { return "sk:{" + name + "}" }

// PartitionPrefix is how all keys of a partition in a generation begin; what is in braces decides about the node.
func PartitionPrefix(name, partition, generation string) string {
	return "sk:{" + name + "/" + partition + "}:" + generation + ":"
}

// ShardKey is the key of a shard.
func ShardKey(prefix string, layer, shard int) string {
	if layer == 0 {
		return prefix + "0"
	}
	return prefix + strconv.Itoa(layer) + ":" + strconv.Itoa(shard)
}

// MarkerKey is the key that is made with the shards of a group and keeps them from being made again.
func MarkerKey(prefix string, layer, group int) string {
	return prefix + strconv.Itoa(layer) + ":m" + strconv.Itoa(group)
}

// Ones returns how many bits are set.
func Ones(data []byte) (n int) {
	for _, b := range data {
		n += bits.OnesCount8(b)
	}
	return n
}

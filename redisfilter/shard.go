package redisfilter

import (
	"encoding/binary"
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
//	tag         u32 of the shard's key, see tagOf; 0 in a shard that an earlier release made
//	the lines   as those of a blocked.Set, but for two bits
//
// Position 511 of each line is its mark. It is set in a shard that was made whole, and no key sets
// it: where a key has position 511, it uses 510. If a shard is lost and a key is then added,
// Redis makes a new value of zeros, which has no marks. So whoever reads one line knows whether its
// zeros mean anything.
const (
	headerLen    = 16
	layersAt     = 8 // in the header
	tagAt        = 12
	shardVersion = 1
	shardBlocked = 1

	markPosition = 511 // of the 512 positions of a line
	markBit      = 1 << (markPosition % 8)
	markByte     = markPosition / 8
)

// blankShard returns a whole shard of no keys.
func (l layerShape) blankShard() []byte {
	data := make([]byte, l.shardLen())
	copy(data, "sift")
	data[4], data[5] = shardVersion, shardBlocked
	binary.LittleEndian.PutUint16(data[6:], uint16(l.Lines))
	for at := headerLen; at < len(data); at += blocked.LineLen {
		data[at+markByte] = markBit
	}
	return data
}

// newShard is blankShard for a key of Redis.
func (l layerShape) newShard(key string) []byte {
	data := l.blankShard()
	copy(data[tagAt:], tagBytes(key))
	return data
}

// tagOf returns a hash of the partition, generation, layer and shard that the key of a shard names. It is never 0.
// A shard that was copied, restored or renamed to another key has a tag that differs.
func tagOf(key string) uint32 {
	return max(1, uint32(xxhash.Sum64String(key[strings.LastIndexByte(key, '/')+1:])))
}

// tagBytes returns the tag of a key as it is in a header.
func tagBytes(key string) []byte { return binary.LittleEndian.AppendUint32(nil, tagOf(key)) }

// hasTag reports whether a shard with a tag may be that of a key.
func hasTag(tag uint32, key string) bool { return tag == 0 || tag == tagOf(key) }

// isShard reports whether some bytes begin the shard of l that belongs to a key.
func (l layerShape) isShard(key string, data []byte) bool {
	return l.validHeader(data) && hasTag(binary.LittleEndian.Uint32(data[tagAt:]), key)
}

// validHeader reports whether some bytes begin a shard of l, of whatever key.
func (l layerShape) validHeader(data []byte) bool {
	return len(data) >= headerLen && string(data[:4]) == "sift" && data[4] == shardVersion && data[5] == shardBlocked &&
		int(binary.LittleEndian.Uint16(data[6:])) == l.Lines
}

// layersOf returns the number of layers that a header of layer 0 tells of, from 1 to most.
func layersOf(header []byte, most int) int {
	n := 1
	for set := binary.LittleEndian.Uint32(header[layersAt:]); set&1 != 0 && n < most; set >>= 1 {
		n++
	}
	return n
}

// layerBit is the offset, as Redis counts, of the bit that says that layer 1, 2, ... exists.
func layerBit(layer int) int { return redisBit(layersAt*8 + layer - 1) }

// redisBit converts a position that counts from each byte's lowest bit to one that counts from its highest.
func redisBit(position int) int { return position ^ 7 }

// lineOffset is where a line begins in a shard, in bytes.
func lineOffset(line int) int { return headerLen + line*blocked.LineLen }

// bitPositions appends the positions of a key's bits in its line of a shard.
func bitPositions(dst []uint16, spot blocked.Spot, probes int) []uint16 {
	dst = spot.Bits(dst, probes)
	for i := range dst {
		dst[i] = min(dst[i], markPosition-1)
	}
	return dst
}

// An answer is what a line says of a key.
type answer uint8

const (
	absent answer = iota
	present
	lost // the line is not there, or was not made by us
)

// ask returns what the bytes of a line say of a key.
func ask(line []byte, spot blocked.Spot, probes int) answer {
	if len(line) != blocked.LineLen {
		return lost
	}
	var room [blocked.MaxProbes]uint16
	for _, p := range bitPositions(room[:0], spot, probes) {
		if line[p/8]&(1<<(p%8)) == 0 {
			if line[markByte]&markBit == 0 {
				return lost
			}
			return absent
		}
	}
	return present
}

// configKey is the key of a set's configuration.
func configKey(name string) string { return "sk:{" + name + "}" }

// partitionPrefix is how all keys of a partition in a generation begin; what is in braces decides
// about the node.
func partitionPrefix(name, partition, generation string) string {
	return "sk:{" + name + "/" + partition + "}:" + generation + ":"
}

// shardKey is the key of a shard.
func shardKey(prefix string, layer, shard int) string {
	if layer == 0 {
		return prefix + "0"
	}
	return prefix + strconv.Itoa(layer) + ":" + strconv.Itoa(shard)
}

// markerKey is the key that is made with the shards of a group and keeps them from being made again.
func markerKey(prefix string, layer, group int) string {
	return prefix + strconv.Itoa(layer) + ":m" + strconv.Itoa(group)
}

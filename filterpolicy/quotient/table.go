package quotient

import (
	"encoding/binary"
	"math/bits"

	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

// The cells of a quotient filter are blocks of 64 slots and, after them, two
// numbers. The footer's units are the blocks; its first parameter is R. A block is
//
//	remainders  64*R bits  of its slots, packed from the lowest bit of the first byte
//	occupied    u64        bit j: quotient 64*block+j has a run
//	runends     u64        bit j: slot 64*block+j is the last of its run
//	offset      u16        slots from the block's first on that hold runs of quotients
//	                       below 64*block
//
// and the numbers are
//
//	quotients   u64        Q, at most the slots
//	values      u64        remainders stored
//
// A hash h has the value v, in the quotient v >> R and with the remainder v % 2^R:
//
//	v = (mix(h ^ seed * 0x9e3779b97f4a7c15) * Q * 2^R) >> 64, the product taken at 128 bits
//	mix(h): h ^= h>>32; h *= M; h ^= h>>29; h *= M; h ^= h>>32;  M = 0xd6e8feb86659fd93
//
// Each value is stored once. Runs are in the order of their quotients. Each begins at the slot of its quotient or at
// the end of the run before, whichever is later, and its remainders ascend. Slots without a remainder are zero.
const (
	blockSlots = 64
	metaLen    = 18 // bytes of a block besides its remainders
	trailerLen = 16
	maxOffset  = 1<<16 - 1
)

func blockLen(remainderBits uint64) uint64 { return 8*remainderBits + metaLen }

// A table is the slots of a filter.
type table struct {
	cells     []byte // whole blocks
	blocks    uint64
	quotients uint64
	bits      uint64 // R
}

func (t *table) block(i uint64) []byte {
	n := blockLen(t.bits)
	return t.cells[i*n : i*n+n]
}

func (t *table) occupied(block []byte) uint64 { return binary.LittleEndian.Uint64(block[8*t.bits:]) }

func (t *table) runends(block []byte) uint64 { return binary.LittleEndian.Uint64(block[8*t.bits+8:]) }

func (t *table) offset(block []byte) uint64 {
	return uint64(binary.LittleEndian.Uint16(block[8*t.bits+16:]))
}

// remainder returns what is in a slot. The eight bytes at any slot's first are inside its
// block, as the block's other words follow.
func (t *table) remainder(slot uint64) uint64 {
	bit := slot % blockSlots * t.bits
	return binary.LittleEndian.Uint64(t.block(slot / blockSlots)[bit/8:]) >> (bit % 8) & (1<<t.bits - 1)
}

func (t *table) endsRun(slot uint64) bool {
	return t.runends(t.block(slot/blockSlots))>>(slot%blockSlots)&1 != 0
}

// values returns the size of the range of values.
func (t *table) values() uint64 { return t.quotients << t.bits }

func (t *table) value(z uint64) uint64 { return hash64.Reduce(z, t.values()) }

func (t *table) has(value uint64) bool {
	quotient, remainder := value>>t.bits, value&(1<<t.bits-1)
	block := t.block(quotient / blockSlots)
	upTo := t.occupied(block) << (blockSlots - 1 - quotient%blockSlots)
	if int64(upTo) >= 0 {
		return false // the quotient's bit is the highest
	}
	first := quotient - quotient%blockSlots + t.offset(block)
	slot, ok := t.runend(first, uint64(bits.OnesCount64(upTo)))
	if !ok {
		return true // not what a builder writes
	}
	for {
		switch stored := t.remainder(slot); {
		case stored == remainder:
			return true
		case stored < remainder || slot <= quotient || t.endsRun(slot-1):
			return false
		}
		slot--
	}
}

// runend returns the slot of the n-th end of a run at or after a slot, n at least 1; false if there is none.
func (t *table) runend(slot, n uint64) (end uint64, ok bool) {
	i := slot / blockSlots
	if i >= t.blocks {
		return 0, false
	}
	ends := t.runends(t.block(i)) >> (slot % blockSlots) << (slot % blockSlots)
	for {
		count := uint64(bits.OnesCount64(ends))
		if n <= count {
			return i*blockSlots + selectBit(ends, n-1), true
		}
		n -= count
		if i++; i >= t.blocks {
			return 0, false
		}
		ends = t.runends(t.block(i))
	}
}

// selectBit returns the place of the bit of x that has n set bits below it; there must be one. The byte is found by
// comparing sums of all bytes at once (S. Vigna, "Broadword Implementation of Rank/Select Queries", 2008).
func selectBit(x, n uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	sums := x - x>>1&0x5555555555555555
	sums = sums&0x3333333333333333 + sums>>2&0x3333333333333333
	sums = (sums + sums>>4) & 0x0f0f0f0f0f0f0f0f * ones // byte i: set bits in bytes 0..i
	at := uint64(bits.OnesCount64(((n*ones|tops)-sums)&tops)) * 8
	n -= sums << 8 >> (at & 63) & 0xff
	rest := x >> (at & 63)
	for ; n > 0; n-- {
		rest &= rest - 1
	}
	return at + uint64(bits.TrailingZeros64(rest))
}

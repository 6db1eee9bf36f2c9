package quotient

import (
	"encoding/binary"
	"iter"
)

// An encoder appends a table's blocks to bytes as values arrive.
type encoder struct {
	table
	dst    []byte
	start  int    // of the blocks in dst
	next   uint64 // the first slot that may be free
	opened uint64 // the blocks with a known offset
	stored uint64
	last   uint64 // the value stored before
}

// encode appends the table of ascending values to dst, each value once, and returns it with
// the number of its blocks. False means that an offset is too large, or a value out of order.
func encode(dst []byte, quotients, remainderBits uint64, values iter.Seq[uint64]) (data []byte, blocks uint64,
	ok bool) {
	e := encoder{start: len(dst), dst: dst}
	e.quotients, e.bits = quotients, remainderBits
	e.extend((quotients + blockSlots - 1) / blockSlots)
	for v := range values {
		if e.stored != 0 && v == e.last {
			continue
		}
		if !e.add(v) {
			return dst, 0, false
		}
	}
	if !e.open(e.blocks) {
		return dst, 0, false
	}
	data = binary.LittleEndian.AppendUint64(e.dst, quotients)
	return binary.LittleEndian.AppendUint64(data, e.stored), e.blocks, true
}

// extend appends empty blocks.
func (e *encoder) extend(blocks uint64) {
	e.dst = append(e.dst, make([]byte, blocks*blockLen(e.bits))...)
	e.cells = e.dst[e.start:]
	e.blocks += blocks
}

// open writes the offsets of blocks below the given one: all quotients before have their runs.
func (e *encoder) open(blocks uint64) bool {
	for ; e.opened < blocks; e.opened++ {
		first := e.opened * blockSlots
		if e.next <= first {
			continue
		}
		if e.next-first > maxOffset {
			return false
		}
		binary.LittleEndian.PutUint16(e.block(e.opened)[8*e.bits+16:], uint16(e.next-first))
	}
	return true
}

// add appends a value to the run of its quotient, which is the last run or a new
// one. False means that there is no place for it.
func (e *encoder) add(v uint64) bool {
	quotient := v >> e.bits
	if quotient >= e.quotients || v < e.last {
		return false // values of a filter that no builder wrote
	}
	again := e.stored != 0 && e.last>>e.bits == quotient
	slot := e.next
	if !again {
		if !e.open(quotient/blockSlots + 1) {
			return false
		}
		slot = max(slot, quotient)
		e.flipOccupied(quotient)
	}
	if slot/blockSlots >= e.blocks {
		e.extend(1)
	}
	block := e.block(slot / blockSlots)
	e.put(block, slot%blockSlots*e.bits, v&(1<<e.bits-1))
	e.set(block[8*e.bits+8:], slot)
	if again { // the run no longer ends in the slot before
		e.set(e.block((slot - 1) / blockSlots)[8*e.bits+8:], slot-1)
	}
	e.last, e.next = v, slot+1
	e.stored++
	return true
}

// set turns over the bit of a slot or quotient in its block's word.
func (*encoder) set(word []byte, i uint64) {
	binary.LittleEndian.PutUint64(word, binary.LittleEndian.Uint64(word)^1<<(i%blockSlots))
}

// put writes a remainder to an empty slot.
func (*encoder) put(block []byte, bit, remainder uint64) {
	bytes := block[bit/8:]
	binary.LittleEndian.PutUint64(bytes, binary.LittleEndian.Uint64(bytes)|remainder<<(bit%8))
}

package quotient

import (
	"encoding/binary"
	"math/bits"
)

// Insertion and removal in place, after Pandey et al., section 3. They leave the
// bytes that encode would write for the same values.
//
// end(x), the end of all runs of quotients up to x, tells where remainders may move. Slot x is free if end(x) <= x, and
// the remainder in slot x is in its own slot if end(x-1) <= x.

// end returns the slot after the last run of a quotient up to x, or some slot up to x if the last such run ends before.
func (t *table) end(x uint64) uint64 {
	if x/blockSlots >= t.blocks {
		return 0
	}
	block := t.block(x / blockSlots)
	first := x - x%blockSlots + t.offset(block)
	runs := uint64(bits.OnesCount64(t.occupied(block) << (blockSlots - 1 - x%blockSlots)))
	if runs == 0 {
		return first
	}
	slot, _ := t.runend(first, runs)
	return slot + 1
}

// A place is where a value is or has to be.
type place struct {
	slot  uint64
	again bool // its quotient has a run
	last  bool // it is, or would be, at the end of the run
}

func (t *table) locate(value uint64) place {
	quotient, remainder := value>>t.bits, value&(1<<t.bits-1)
	after := t.end(quotient)
	if t.occupied(t.block(quotient/blockSlots))>>(quotient%blockSlots)&1 == 0 {
		return place{slot: max(quotient, after), last: true}
	}
	slot := after
	for slot > quotient && (slot == after || !t.endsRun(slot-1)) && t.remainder(slot-1) >= remainder {
		slot--
	}
	last := slot == after || slot == after-1 && t.remainder(slot) == remainder
	return place{slot, true, last}
}

// insert puts a value in that is not there. False means that an offset would be too large; the table is then as it was.
func (t *table) insert(value uint64) bool {
	quotient := value >> t.bits
	p := t.locate(value)
	free := p.slot
	for e := t.end(free); e > free; e = t.end(free) {
		free = e
	}
	for b := quotient/blockSlots + 1; b <= free/blockSlots && b < t.blocks; b++ {
		if t.offset(t.block(b)) == maxOffset {
			return false
		}
	}
	if free/blockSlots >= t.blocks {
		t.cells = append(t.cells, make([]byte, blockLen(t.bits))...)
		t.blocks++
	}
	t.shiftUp(p.slot, free)
	t.write(p.slot, value&(1<<t.bits-1), p.last)
	if p.again && p.last {
		t.write(p.slot-1, t.remainder(p.slot-1), false)
	}
	if !p.again {
		t.flipOccupied(quotient)
	}
	t.addOffsets(quotient, free, 1)
	return true
}

// remove takes a value out that is there.
func (t *table) remove(value uint64) {
	quotient := value >> t.bits
	p := t.locate(value)
	stays := p.slot + 1
	for e := t.end(stays - 1); e > stays; e = t.end(stays - 1) {
		stays = e
	}
	if p.last {
		if p.slot > quotient && !t.endsRun(p.slot-1) {
			t.write(p.slot-1, t.remainder(p.slot-1), true)
		} else {
			t.flipOccupied(quotient)
		}
	}
	freed := stays - 1
	t.shiftDown(p.slot, freed)
	t.write(freed, 0, false)
	t.addOffsets(quotient, freed, -1)
	if last := t.blocks - 1; freed == last*blockSlots && freed >= t.quotients {
		t.blocks = last // runs no longer reach beyond the last quotient's block
		t.cells = t.cells[:last*blockLen(t.bits)]
	}
}

func (t *table) flipOccupied(quotient uint64) {
	word := t.block(quotient / blockSlots)[8*t.bits:]
	binary.LittleEndian.PutUint64(word, binary.LittleEndian.Uint64(word)^1<<(quotient%blockSlots))
}

// addOffsets corrects the offsets of the blocks that a quotient's runs reach, or would,
// when slots up to the last one have moved by one.
func (t *table) addOffsets(quotient, last uint64, by int) {
	for b := quotient/blockSlots + 1; b <= last/blockSlots; b++ {
		block := t.block(b)
		binary.LittleEndian.PutUint16(block[8*t.bits+16:], uint16(int(t.offset(block))+by))
	}
}

func (t *table) write(slot, remainder uint64, endsRun bool) {
	block, i := t.block(slot/blockSlots), slot%blockSlots
	bit := i * t.bits
	word := block[bit/8:]
	rest := binary.LittleEndian.Uint64(word) &^ ((1<<t.bits - 1) << (bit % 8))
	binary.LittleEndian.PutUint64(word, rest|remainder<<(bit%8))
	ends := t.runends(block) &^ (1 << i)
	if endsRun {
		ends |= 1 << i
	}
	binary.LittleEndian.PutUint64(block[8*t.bits+8:], ends)
}

// shiftUp moves slots from..to-1 to from+1..to.
func (t *table) shiftUp(from, to uint64) {
	for b := to / blockSlots; ; b-- {
		start := b * blockSlots
		low, high := max(from, start), min(to, start+blockSlots-1)
		block := t.block(b)
		moveUp(block[:8*t.bits], (low-start)*t.bits, (high-start)*t.bits, t.bits)
		moveUp(block[8*t.bits+8:8*t.bits+16], low-start, high-start, 1)
		if start <= from {
			return
		}
		t.write(start, t.remainder(start-1), t.endsRun(start-1))
	}
}

// shiftDown moves slots from+1..to to from..to-1.
func (t *table) shiftDown(from, to uint64) {
	for b := from / blockSlots; ; b++ {
		start := b * blockSlots
		low, high := max(from, start), min(to, start+blockSlots-1)
		block := t.block(b)
		moveDown(block[:8*t.bits], (low-start)*t.bits, (high-start)*t.bits, t.bits)
		moveDown(block[8*t.bits+8:8*t.bits+16], low-start, high-start, 1)
		if to <= high {
			return
		}
		t.write(high, t.remainder(high+1), t.endsRun(high+1))
	}
}

// moveUp moves the bits from..to-1 of little-endian words up by fewer than 64 places.
func moveUp(words []byte, from, to, by uint64) {
	if from >= to {
		return
	}
	for i := (to + by - 1) / 64; ; i-- {
		word := words[8*i : 8*i+8]
		x := binary.LittleEndian.Uint64(word)
		moved := x << by
		if i > 0 {
			moved |= binary.LittleEndian.Uint64(words[8*i-8:]) >> (64 - by)
		}
		mask := window(i, from+by, to+by)
		binary.LittleEndian.PutUint64(word, x&^mask|moved&mask)
		if i <= (from+by)/64 {
			return
		}
	}
}

// moveDown moves the bits from+by..to+by-1 of little-endian words down by fewer than 64 places.
func moveDown(words []byte, from, to, by uint64) {
	if from >= to {
		return
	}
	for i := from / 64; i <= (to-1)/64; i++ {
		word := words[8*i : 8*i+8]
		x := binary.LittleEndian.Uint64(word)
		moved := x >> by
		if next := words[8*i+8:]; len(next) != 0 {
			moved |= binary.LittleEndian.Uint64(next) << (64 - by)
		}
		mask := window(i, from, to)
		binary.LittleEndian.PutUint64(word, x&^mask|moved&mask)
	}
}

// window returns the bits of word i that are among the bits from..to-1 of all words, at least one of which is.
func window(i, from, to uint64) uint64 {
	mask := ^uint64(0)
	if from > 64*i {
		mask <<= from - 64*i
	}
	if end := 64*i + 64; to < end {
		mask &= ^uint64(0) >> (end - to)
	}
	return mask
}

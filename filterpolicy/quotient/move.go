package quotient

import "encoding/binary"

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

// moveDown moves the bits from+by..to+by-1 of little-endian words down by fewer than 64
// places.
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

// window returns the bits of word i that are among the bits from..to-1 of all words, at
// least one of which is.
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

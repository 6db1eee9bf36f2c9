package cuckoo

// padding lets eight bytes be read at the last slot.
const padding = 7

// A shape is how buckets of B slots of F bits lie in memory. A bucket is handled as
// one or more words of some lanes (slots) each: as many as surely fit eight bytes
// that begin at a whole byte.
type shape struct {
	bits     uint64 // F
	slots    uint64 // B
	lanesLog uint64 // the logarithm of lanes per word
	words    uint64 // per bucket: 1, 2, 4 or 8
	wordBits uint64 // lanes times F
	ones     uint64 // the lowest bit of each lane
	tops     uint64 // the highest bit of each lane
	values   uint64 // 2^F - 1: the fingerprints there are
}

// shapes holds every shape there is, by slots and bits, so that a view of some
// bytes costs no arithmetic. A shape without slots is none.
var shapes = func() (all [9][maxBits + 1]shape) {
	for _, slots := range []uint64{2, 4, 8} {
		for bits := uint64(minBits); bits <= maxBits; bits++ {
			all[slots][bits] = newShape(bits, slots)
		}
	}
	return all
}()

// shapeOf returns the shape of a pair of parameters, nil if they are out of bounds.
func shapeOf(bits, slots uint32) *shape {
	if slots >= uint32(len(shapes)) || bits > maxBits || shapes[slots][bits].slots == 0 {
		return nil
	}
	return &shapes[slots][bits]
}

func newShape(bits, slots uint64) shape {
	s := shape{bits: bits, slots: slots, words: 1, wordBits: slots * bits, values: 1<<bits - 1}
	for !oneLoad(s.wordBits) {
		s.words *= 2
		s.wordBits /= 2
	}
	for at := uint64(0); at < s.wordBits; at += bits {
		s.ones |= 1 << at
	}
	s.tops = s.ones << (bits - 1)
	for 1<<s.lanesLog < slots/s.words {
		s.lanesLog++
	}
	return s
}

// oneLoad reports whether eight bytes, read from a whole byte on, hold any word of
// so many bits that stands at a multiple of its length.
func oneLoad(wordBits uint64) bool {
	shift := 8 - min(8, wordBits&-wordBits) // the most that a word begins past a whole byte
	return wordBits+shift <= 64
}

// size returns the bytes of so many buckets, with the padding.
func (s *shape) size(buckets uint64) uint64 {
	return (buckets*s.slots*s.bits+7)/8 + padding
}

// zeros marks, by their highest bits, lanes of x that are zero: none if there is
// none, else the lowest one and perhaps some above it.
func (s *shape) zeros(x uint64) uint64 { return (x - s.ones) &^ x & s.tops }

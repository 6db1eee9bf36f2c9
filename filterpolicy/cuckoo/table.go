package cuckoo

import (
	"encoding/binary"
	"math/bits"

	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

// padding lets eight bytes be read at the last slot.
const padding = 7

// A shape is the layout in memory of buckets of B slots of F bits. A bucket is handled as one or
// more words of some lanes (slots) each. A word always fits eight bytes that begin at a whole byte.
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

// oneLoad reports whether eight bytes, beginning at a whole byte, hold any word of
// wordBits bits that begins at a multiple of its length.
func oneLoad(wordBits uint64) bool {
	shift := 8 - min(8, wordBits&-wordBits) // the most that a word begins past a whole byte
	return wordBits+shift <= 64
}

// size returns the bytes of the given number of buckets, with the padding.
func (s *shape) size(buckets uint64) uint64 {
	return (buckets*s.slots*s.bits+7)/8 + padding
}

// zeros marks, by their highest bits, lanes of x that are zero: none if there is
// none, else the lowest one and perhaps some above it.
func (s *shape) zeros(x uint64) uint64 { return (x - s.ones) &^ x & s.tops }

// The cells of a cuckoo filter are its slots, F bits each, packed without gaps from the lowest bit
// of the first byte. Seven zero bytes follow, so that any slot can be read as a part of eight
// bytes. Slot s of bucket i is slot i*B+s; zero means empty. The footer's units are the buckets, an
// even number m; its parameters are F and B. A hash h has one fingerprint and two buckets:
//
//	z = mix(h ^ seed * 0x9e3779b97f4a7c15)
//	fingerprint = 1 + ((z % 2^32) * (2^F-1)) >> 32
//	i = (z * m) >> 64, the product taken at 128 bits
//	j = (H - i) mod m,  H = ((mix(fingerprint ^ seed<<32) * m) >> 64) | 1
//	mix(h): h ^= h>>32; h *= M; h ^= h>>29; h *= M; h ^= h>>32;  M = 0xd6e8feb86659fd93
//
// H is odd and m is even, so i and j are never the same bucket; and i = (H - j) mod
// m, so either leads to the other without the key.

// A table is the slots and what locates a key in them.
type table struct {
	*shape
	cells   []byte // shape.size(buckets) bytes
	buckets uint64 // even, at least 2
	seed    uint32
}

func newTable(p Policy, buckets uint64, seed uint32) *table {
	s := p.shape()
	return &table{s, make([]byte, s.size(buckets)), buckets, seed}
}

// locate returns the fingerprint of a hash and its first bucket.
func (t *table) locate(h uint64) (fingerprint, bucket uint64) {
	z := hash64.Mix(h ^ uint64(t.seed)*hash64.Golden)
	return 1 + z&0xffffffff*t.values>>32, hash64.Reduce(z, t.buckets)
}

// other returns the second bucket of a fingerprint whose first is given, and the first if the second is given.
func (t *table) other(fingerprint, bucket uint64) uint64 {
	sum := hash64.Reduce(hash64.Mix(fingerprint^uint64(t.seed)<<32), t.buckets) | 1
	d := sum - bucket
	return d + t.buckets&uint64(int64(d)>>63) // one table further when the difference is negative
}

// word returns a word; bits above its lanes are its neighbours'.
func (t *table) word(i uint64) uint64 {
	bit := i * t.wordBits
	return binary.LittleEndian.Uint64(t.cells[bit/8:]) >> (bit % 8)
}

func (t *table) has(bucket, fingerprint uint64) bool {
	pattern := fingerprint * t.ones
	found := uint64(0)
	for w := range t.words {
		found |= t.zeros(t.word(bucket*t.words+w) ^ pattern)
	}
	return found != 0
}

// put stores the fingerprint in the first empty slot of a bucket, or says false.
func (t *table) put(bucket, fingerprint uint64) bool {
	for w := range t.words {
		i := bucket*t.words + w
		if empty := t.zeros(t.word(i)); empty != 0 {
			t.flip(i, uint64(bits.TrailingZeros64(empty))+1-t.bits, fingerprint)
			return true
		}
	}
	return false
}

// swap stores the fingerprint in the given slot of a bucket and returns what was there.
func (t *table) swap(bucket, slot, fingerprint uint64) (old uint64) {
	i, at := bucket*t.words+slot>>t.lanesLog, slot&(1<<t.lanesLog-1)*t.bits
	old = t.word(i) >> at & t.values
	t.flip(i, at, old^fingerprint)
	return old
}

// flip inverts the bits of mask in a word, beginning at its bit at.
func (t *table) flip(word, at, mask uint64) {
	bit := word * t.wordBits
	bytes := t.cells[bit/8:]
	x := binary.LittleEndian.Uint64(bytes) ^ mask<<(bit%8+at)
	binary.LittleEndian.PutUint64(bytes, x)
}

package cuckoo

import (
	"encoding/binary"
	"math/bits"

	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

// The cells of a cuckoo filter are its slots, F bits each, packed without gaps from
// the lowest bit of the first byte, and then seven zero bytes so that any slot can
// be read as a part of eight bytes. Slot s of bucket i is slot i*B+s; zero means
// empty. The footer's units are the buckets, an even number m; its parameters are F
// and B. A hash h has one fingerprint and two buckets:
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

// other returns the second bucket of a fingerprint whose first is given, and the
// first if the second is given.
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

// has reports whether a bucket holds the fingerprint.
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

// swap stores the fingerprint in the given slot of a bucket and returns what was
// there.
func (t *table) swap(bucket, slot, fingerprint uint64) (old uint64) {
	i, at := bucket*t.words+slot>>t.lanesLog, slot&(1<<t.lanesLog-1)*t.bits
	old = t.word(i) >> at & t.values
	t.flip(i, at, old^fingerprint)
	return old
}

// flip inverts the bits of mask in a word, from its bit at on.
func (t *table) flip(word, at, mask uint64) {
	bit := word * t.wordBits
	bytes := t.cells[bit/8:]
	x := binary.LittleEndian.Uint64(bytes) ^ mask<<(bit%8+at)
	binary.LittleEndian.PutUint64(bytes, x)
}

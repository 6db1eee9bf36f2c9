package cuckootable

import "math/bits"

// A Place is where a key may lie: in either of two buckets of a shard, as a fingerprint.
type Place struct {
	Shard       uint32
	Fingerprint uint32 // never 0
	I, J        uint32 // the buckets; they differ
}

// Place returns the place of a key by its hash. Any 64-bit numbers will do, counters too.
func (s Shape) Place(h uint64) Place {
	z := mix(h)
	shard, rest := bits.Mul64(z, uint64(s.Shards))
	i, _ := bits.Mul64(rest, uint64(s.Buckets))
	fingerprint := uint32(1 + mix(z)&0xffffffff*s.values()>>32)
	return Place{uint32(shard), fingerprint, uint32(i), s.other(fingerprint, uint32(i))}
}

// values returns the number of fingerprints there are.
func (s Shape) values() uint64 { return 1<<s.Bits - 1 }

// other returns the second bucket of a fingerprint whose first is given, and the first if the
// second is given. table.lua computes the same.
func (s Shape) other(fingerprint, bucket uint32) uint32 {
	x := (uint64(fingerprint&0xffff)*0x9e3779b1 + uint64(fingerprint>>16)*0x85ebca6b) & 0xffffffff
	sum := uint32(x*uint64(s.Buckets)>>32) | 1
	if sum < bucket {
		sum += s.Buckets
	}
	return sum - bucket
}

// mix spreads each bit of h over all bits, and is a bijection.
func mix(h uint64) uint64 {
	const m = 0xd6e8feb86659fd93
	h = (h ^ h>>32) * m
	h = (h ^ h>>29) * m
	return h ^ h>>32
}

package cuckootable

import (
	"fmt"
	"math"
)

const (
	// MaxKeys is the number of keys that a set can be made for.
	MaxKeys = 1 << 32

	// DefaultSize is the most bytes of a shard unless asked otherwise: with what Redis adds they
	// just fit an allocation of 8 KB. Smaller shards differ more in their loads and so waste more
	// slots; 4 KB take 3 % more memory.
	DefaultSize = 8184

	minSize  = 1024
	safeLoad = 0.94 // of a large shard; copies of one key are refused before
	refusals = 1e-3 // probability that one of a set's shards gets more keys than it has room for
)

// NewShape returns the smallest shape for n keys, copies counted, with shards of at most maxSize
// bytes, and at least so many of them. With n keys its rate is at most the one given. About one set
// in a thousand refuses a key before it has n.
func NewShape(n uint64, rate float64, maxSize, least int) (Shape, error) {
	switch {
	case n < 1 || n > MaxKeys:
		return Shape{}, fmt.Errorf("cuckootable: a set is for 1 to %d keys, not %d", uint64(MaxKeys), n)
	case !(rate > 0 && rate < 1):
		return Shape{}, fmt.Errorf("cuckootable: the rate must be above 0 and below 1, not %g", rate)
	case least < 0 || least > maxShards:
		return Shape{}, fmt.Errorf("cuckootable: a set has up to %d shards, not %d", maxShards, least)
	case maxSize < minSize || maxSize > maxShardSize:
		return Shape{}, fmt.Errorf("cuckootable: shards must have %d to %d bytes, not %d",
			minSize, maxShardSize, maxSize)
	}
	for bits := uint32(minBits); bits <= maxBits; bits++ {
		s := Shape{Bits: bits, Shards: uint32(max(1, least))}
		s.fit(n, s.mostBuckets(maxSize))
		if s.Rate(n) <= rate {
			return s, s.Check()
		}
	}
	return Shape{}, fmt.Errorf("cuckootable: a rate of %g needs fingerprints of more than %d bits; "+
		"ask for at least 2e-9", rate, maxBits)
}

// Rate returns the probability that a random key that was never added seems to be among n keys.
func (s Shape) Rate(n uint64) float64 {
	perShard := float64(n) / float64(s.Shards)
	classes := float64(s.values()) * float64(s.Buckets) / 2
	return -math.Expm1(-perShard / classes)
}

// Keys estimates how many keys a shard holds of whose slots so many bits are set, to some
// 1/sqrt(bits of all its keys) of it.
func (s Shape) Keys(ones int) int {
	perKey := float64(s.Bits) / 2 * float64(s.values()+1) / float64(s.values()) // a fingerprint is not 0
	return int(math.Round(float64(ones) / perKey))
}

// SlotBytes returns the first and the last byte of a shard's slots.
func (s Shape) SlotBytes() (first, last int) { return headerSize, s.markAt() - 1 }

// mostBuckets returns the most buckets of a shard of at most size bytes.
func (s Shape) mostBuckets(size int) uint32 {
	return uint32(size-headerSize-markSize) / s.Bits * 2
}

// fit chooses shards and buckets for n keys: as few more shards as possible, then as few buckets.
func (s *Shape) fit(n uint64, largest uint32) {
	keys := float64(n)
	s.Shards = max(s.Shards, uint32(keys/(safeLoad*slots*float64(largest))))
	for roomIn(largest) < keysPerShard(keys, float64(s.Shards)) {
		s.Shards += 1 + s.Shards/1000
	}
	need := keysPerShard(keys, float64(s.Shards))
	s.Buckets = max(8, 2*uint32(need/(2*slots)))
	for roomIn(s.Buckets) < need {
		s.Buckets += 2
	}
}

// keysPerShard returns a number of keys that hardly ever one of the shards exceeds when keys are
// dealt out at random: their mean plus about five standard deviations.
func keysPerShard(keys, shards float64) float64 {
	deviation := math.Sqrt(keys / shards * (1 - 1/shards))
	return keys/shards + deviation*math.Sqrt2*math.Erfcinv(2*refusals/shards)
}

// roomIn returns the number of keys for which a shard nearly always has room, if few of them are
// copies. Shards differ by chance, small ones more.
func roomIn(buckets uint32) float64 {
	room := safeLoad * slots * float64(buckets)
	return room - math.Sqrt(room)/2 - 1
}

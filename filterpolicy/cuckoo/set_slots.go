package cuckoo

import "math/bits"

// equalLanes marks, by their highest bits, the lanes of x that are zero, and no
// others.
func (s *shape) equalLanes(x uint64) uint64 {
	low := s.tops - s.ones // all bits of a lane but the highest
	return ^(x&low + low | x) & s.tops
}

// countIn returns how often a bucket holds the fingerprint; 0 counts empty slots.
func (t *table) countIn(bucket, fingerprint uint64) (n uint64) {
	pattern := fingerprint * t.ones
	for w := range t.words {
		n += uint64(bits.OnesCount64(t.equalLanes(t.word(bucket*t.words+w) ^ pattern)))
	}
	return n
}

// take empties the first slot of a bucket that holds the fingerprint, or says
// false.
func (t *table) take(bucket, fingerprint uint64) bool {
	pattern := fingerprint * t.ones
	for w := range t.words {
		i := bucket*t.words + w
		if hits := t.zeros(t.word(i) ^ pattern); hits != 0 {
			t.flip(i, uint64(bits.TrailingZeros64(hits))+1-t.bits, fingerprint)
			return true
		}
	}
	return false
}

// at returns what a slot of a bucket holds.
func (t *table) at(bucket, slot uint64) uint64 {
	return t.word(bucket*t.words+slot>>t.lanesLog) >> (slot & (1<<t.lanesLog - 1) * t.bits) & t.values
}

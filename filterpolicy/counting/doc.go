// Package counting is the counting Bloom filter: a Bloom filter whose bits are
// small counters, so that keys can be removed, and counted.
//
// Choose it for a changing set of which copies of keys are added and removed, where a key may be
// added many times. If keys are added at most a few times, a cuckoo set takes a quarter of the
// memory; if they are never removed, a bloom set does.
//
// Source: L. Fan, P. Cao, J. Almeida and A. Z. Broder, "Summary Cache: A Scalable Wide-Area Web
// Cache Sharing Protocol", 2000. The counters are in k slices, one for each probe, so that no key
// ever meets one counter twice and the counts are exact except for collisions. The probes are drawn
// independently, not by double hashing, so that the promised rate holds for small sets and for low
// rates.
//
// Counters saturate: one that has reached its top, 15 or 255, stays there, as it no longer tells
// how many keys it stands for. A key is therefore never under-counted and never lost; what
// saturation costs is that some keys cannot be removed any more. With 4 bits and no key added
// twice, one counter in 10^15 saturates at capacity; for keys that are added more than a few times
// take 8 bits.
//
// Costs. Space: 4 or 8 times a Bloom filter's, 38 or 77 bits per key at 1 %. Adding and removing: k
// probes, each a cache miss in a large set; removing makes them twice. An absent key stops at its
// first zero, after two probes on average.
//
// Limits: keys cannot be listed. Remove refuses a key that was never added if Contains says false
// for it. At the rate of false positives it takes other keys' counts away, and they may be lost. If
// you cannot be sure, ask an exact source first.
package counting

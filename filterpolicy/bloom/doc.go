// Package bloom is the classic Bloom filter: k probes spread over one array of bits.
//
// Choose it when memory matters more than time, and for the exact textbook rate. At 10 bits per key it says "maybe" to
// 0.82 % of absent keys; a blocked filter says so to 0.97 %. It takes any number of bits per key, whole or not.
//
// Source: B. H. Bloom, "Space/Time Trade-offs in Hash Coding with Allowable Errors", CACM 1970. The probes of a key are
// made from one 64-bit hash by enhanced double hashing (P. C. Dillinger and P. Manolios, "Bloom Filters in
// Probabilistic Verification", FMCAD 2004) on the 64-bit circle, then scaled to the array, so that the rate does not
// drift at hundreds of millions of keys.
//
// Costs. Space: the bits asked for, and 32 bytes. Probe: an absent key stops at its first clear bit, after two probes
// on average; a present key makes all k; in a filter larger than the CPU's cache each probe is a cache miss. Build: k
// random writes per key; eight bytes per key of memory until Finish.
//
// A Set is the same filter for an application that adds keys as they come; a ConcurrentSet is a Set that needs no lock.
// They allocate their bits at once and keep nothing else per key; adding costs k probes.
//
// Limits: keys cannot be removed or listed, and duplicates that are not consecutive take space as if they were keys of
// their own.
package bloom

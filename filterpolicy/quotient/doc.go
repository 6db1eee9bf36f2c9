// Package quotient is a rank-and-select quotient filter: a compact hash table
// that keeps a fingerprint of each key in order.
//
// Choose it for filters that are merged or listed: it is the list of its keys'
// fingerprints, All yields them in order, and Merge makes one filter of two without a key
// being hashed again. R is the bits of a remainder, and the rate is 0.95 * 2^-R.
//
// A fingerprint is a number below Q * 2^R; its upper part, the quotient, is the slot where its lower part, the
// remainder, wants to be. Remainders of one quotient are neighbours, a run, and runs keep the order of their quotients.
// Two bits per slot tell which quotients have a run and where runs end; the n-th run ends at the n-th end. Q is any
// number: the product of hash and range has the order of the hash.
//
// Filters can be merged when they were built over the same range. Two files of unlike size are not; NewBuilderFor fixes
// the range in advance, for parts of one whole. Each doubling by merges takes a bit from the remainders and gives it to
// the quotients, so that the fingerprints stay what they are.
//
// Source: P. Pandey, M. A. Bender, R. Johnson and R. Patro, "A General-Purpose Counting Filter: Making Every Bit
// Count", SIGMOD 2017, without the counters; offsets have 16 bits here, which a load of 95 % needs.
//
// Costs. Space: (R + 2.25) / 0.95 bits per key. Probe: one block of 64 slots, mostly, and the next.
// Build: a sort and a pass; 17 bytes per key of memory until Finish, besides the filter itself.
//
// Duplicates cost nothing, in any order. If 65 536 hashes crowd in one place, the build begins again with another seed,
// a bounded number of times; after that the builder declines.
//
// Limits: the bytes are read-only; keys cannot be removed, and are not counted.
//
// A Set is the same table in an application's memory, where keys can be: it takes them one by one, removes and counts
// them, merges with others, and grows and shrinks without the keys. It costs a rate's remainder bits and 2.25, through
// 0.95, for each different key when it is full, and one bit more for each doubling that Options.Grow allows.
package quotient

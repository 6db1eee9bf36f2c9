// Package xor is the xor filter: an array of fingerprints in three thirds, in which
// the exclusive-or of a key's three cells is the key's fingerprint.
//
// It is the elder of package fuse, which takes a twelfth less space, builds faster and probes nearer places; choose
// fuse for files. Choose xor to compare with what has been published about it, and for sets of some hundred keys, for
// which both take the same space and xor needs no tuned sizes.
//
// Source: T. M. Graf and D. Lemire, "Xor Filters: Faster and Smaller Than Bloom and Cuckoo Filters", ACM JEA 2020.
// Fingerprints may have any number of bits from 4 to 32, not only those of a machine word; F is their number.
//
// Costs. Space: 1.23 F bits per key, and 32 F bits and 39 bytes. False positives: 2^-F, for F = 8 0.39 %. Probe: three
// cells, for absent and present keys alike, read at the same time; in a filter larger than the CPU's cache three cache
// misses. Build: some ten times a blocked filter's; eight bytes per key of memory until Finish, and 24 more during
// Finish, which are kept for the next build, besides the filter itself.
//
// Duplicates cost nothing, in whatever order they come. A build that fails, which is rare, is repeated with another
// seed and then with a larger array, a bounded number of times; after that the builder declines.
//
// Limits: keys cannot be removed or listed. A filter has at most 3.4 billion keys.
package xor

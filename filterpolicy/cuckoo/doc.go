// Package cuckoo is a cuckoo filter: a hash table of short fingerprints in which each key has two buckets to be in.
//
// Choose it for low false-positive rates: above about eleven bits per key it needs fewer bits than a blocked filter,
// and a probe reads two buckets at any rate. F is the fingerprint's bits, B the slots of a bucket; four slots suit most
// uses, two make a probe a little more selective, eight fill best.
//
// Source: B. Fan, D. G. Andersen, M. Kaminsky and M. Mitzenmacher, "Cuckoo Filter: Practically Better Than Bloom",
// CoNEXT 2014. The paper pairs buckets by exclusive-or, which needs a power of two of them and wastes up to half the
// table; here the pair is (i, H-i mod m), its own inverse for every m.
//
// Costs. Space: F / load bits per key, where load is 0.84, 0.95 and 0.98 for two, four and eight slots, and 39 bytes.
// False positives: 1 - (1 - 1/(2^F-1))^(2 B load), for F = 12 and B = 4 0.19 %. Build: five times a blocked filter's;
// eight bytes per key of memory until Finish, besides the filter itself.
//
// A key is not stored again if its fingerprint is already in one of its two buckets. So duplicates,
// in any order, cost nothing and fill nothing. A build that fails is repeated with another seed and
// then with a larger table, a bounded number of times; after that the builder declines.
//
// A Filter's bytes are read-only: keys cannot be removed or listed.
//
// # Sets
//
// A Set is the same table in an application: keys are added and removed one by one, and counted. Choose it to remember
// keys that go again, for de-duplication or in front of a cache; if keys only come, a Bloom filter is faster to fill.
// At a rate of 1 % it takes 10.6 bits per key, against 38 of a counting Bloom filter. It refuses what does not fit and
// never drops another key for it. It may grow as a chain of tables in which every key has one home, so that removing
// never touches the wrong table; see Options.Grow. Limits: sets cannot be merged or listed, and what was never added
// must not be removed (see Set).
package cuckoo

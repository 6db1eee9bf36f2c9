// Package lookupsample keeps a sample of a store's lookups and scans in a fixed number of bytes of memory. It has those
// of one key in some, chosen by hash, with whole keys and in order.
//
// A threshold for their hashes decides which keys are in it, so all lookups of a key are there or none. A cache that is
// smaller in the same proportion then finds about as much (SHARDS: C. A. Waldspurger et al., "Efficient MRC
// construction with SHARDS", FAST 2015). The threshold begins with all keys, and is halved when the sample is full, as
// in that paper's variant of fixed size, until the sample reaches back long enough. After that the oldest half of the
// lookups goes instead: a sample must be recent.
package lookupsample

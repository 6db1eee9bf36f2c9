// Package lookupsample keeps a sample of a store's lookups and scans in a fixed number of bytes of
// memory: those of one key in so many, chosen by hash, whole keys and the order in which they came.
//
// Which keys are in it is decided by a threshold for their hashes, so that of a key all lookups
// are there or none: a cache that is as many times smaller finds about as much (SHARDS: C. A. Waldspurger
// et al., "Efficient MRC construction with SHARDS", FAST 2015). The threshold begins with all keys,
// and is halved when the sample is full, as in that paper's variant of fixed size; until it is so
// low that the sample reaches far enough back. From then on the oldest half of the lookups goes
// instead: a sample is to be of the present.
package lookupsample

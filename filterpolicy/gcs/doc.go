// Package gcs is a Golomb-coded set: the sorted list of the keys' hashes, cut short
// and written as differences in a Golomb code, with an index.
//
// Choose it for sets that are small, sent over a network, or merged and listed more often than
// probed. No other family is as simple to read in another language, and it is a list, which All
// yields in order. Where probes count, a ribbon takes fewer bits and a tenth of the time.
//
// Filters over the same range are merged by merging their lists, without a key being hashed again.
// Two files of unlike size do not have the same range; NewBuilderFor fixes it in advance, for parts
// of one whole. A part takes about 1.5 bits for each key of the whole and B for each of its own;
// merged parts take what the whole does, and the rate is the sum of theirs.
//
// B bits stand for a rate of 2^-B; B may have decimals, and "rate=0.01" stands for
// the least B with that rate or a lower one.
//
// Source: F. Putze, P. Sanders and J. Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", WEA 2007; S. W.
// Golomb, "Run-length encodings", 1966; truncated binary remainders after R. G. Gallager and D. C. Van Voorhis, 1975.
// The index is this package's own: the range is divided into buckets of 128 keys on average, and where the code of a
// bucket begins is stored as the deviation from a straight line.
//
// Costs. Space: B + 1.48 bits per key for the codes and 0.1 for the index. Probe: half a bucket is decoded, 64
// differences. Build: a sort and a pass; 17 bytes per key of memory until Finish, besides the filter itself.
//
// Duplicates cost nothing, in any order. Limits: keys cannot be removed.
package gcs

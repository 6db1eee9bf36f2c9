// Package blocked is a Bloom filter with all probes of a key in one line of 64 bytes.
//
// Choose it for the files of a store: it is the default. A probe costs one cache miss however large the filter is, and
// an absent key is nearly always known as such after four bits tested without a branch.
//
// Source: F. Putze, P. Sanders and J. Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", WEA 2007. The numbers
// of probes come from simulation (simulation.md); RocksDB's full-file filter, which has the same shape, set the rates
// to reach.
//
// Costs. Space: the bits asked for, rounded up to whole lines, and 32 bytes. False positives: 0.97 % at 10 bits per
// key, 0.084 % at 16. Some lines get more keys than others, so the classic filter is better by a sixth at 10 bits and
// by half at 16. Build: about 10 ns per key in the cache; eight bytes per key of memory until Finish.
//
// A Set is the same filter for an application that adds keys as they come. It allocates its lines at once and keeps
// nothing else per key; adding costs one cache miss. Locate, Shape and FromLines let programs keep the lines of a Set
// elsewhere.
//
// Limits: keys cannot be removed or listed. Duplicates that are not consecutive take space as if they were keys of
// their own. Above 24 bits per key each further bit buys little.
package blocked

// Package cutkeys is a filter that answers for ranges of keys: each key is cut to where it
// differs from its neighbours, and some bits more.
//
// A filter of hashes knows nothing of the order of keys. This one keeps the order: the keys are a sorted list of bit
// strings, just long enough to distinguish each from its two neighbours. A cut key stands for all keys that begin so; a
// range that meets no such interval is empty. Bits that are kept beyond that, m of them, narrow the intervals, and
// halve the errors each.
//
// For keys of random bits, and an empty range that is narrow compared with the distance of two keys, the rate is 2^-m /
// (2 ln 2): 1.1 % for m = 6. Ranges of names are passed more often, since names crowd. A range that begins just behind
// a key, nearer than the cut can tell, is always passed: no filter of this kind can know better.
//
// Bits. Keys differ in few of their bytes, and these are no even choice of 256. The common prefix of all keys is stored
// once. Each byte is written in a code that keeps the order, and is short for bytes that are frequent where keys part
// (alphabet.go). So all bits tell about equally much. Fixed codes for the same names take one to three bits per key
// more and err a quarter more often. The list is in groups of 64 keys: the number of bits that a key has in common with
// the one before it, Rice-coded, and the bits behind them. Marks, the first 64 bits of each group, are searched.
//
// Costs. Space: 6.8 + m bits per key for random keys; 9 to 15 + m for names. Query: both bounds
// are written as codes, marks are searched, and half a group of lengths is decoded. Build:
// one pass over the keys and one over what is left of them; some 10 bytes per key until Finish.
//
// Any byte strings are keys. Equal keys cost nothing. Limits: keys come in order, and filters cannot be merged. Long
// keys that differ at their ends only, two or three at a time, have no filter: it would store most of their bytes (see
// Builder.Finish). Keys that differ within 40 bytes on average have a large one: 100 bits per key for pairs that begin
// with 16 random bytes.
//
// Sources: H. Zhang et al., "SuRF: Practical Range Query Filtering with Fast Succinct Tries",
// SIGMOD 2018, for keys cut where they differ and bits behind; H. Zhang et al., "Order-Preserving
// Key Compression for In-Memory Search Trees", SIGMOD 2020, for such codes before a filter;
// E. N. Gilbert and E. F. Moore, "Variable-Length Binary Encodings", 1959, for the codes; R. F. Rice, 1979, for the
// lengths. The list in place of a trie, and the search in it, are this package's own.
package cutkeys

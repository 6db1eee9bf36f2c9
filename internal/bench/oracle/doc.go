// Package oracle is a filter that does not err: the bound that every filter is held
// against.
//
// The keys of each sorted file, as 64-bit hashes, are in the memory of the process
// that wrote it; the file itself has a number of eight bytes in place of a filter. So
// the oracle takes next to nothing in the files and in what stores count, and its
// memory, about eleven bytes per key and file that was ever written, belongs to the
// harness. A store is read with its filters by the process that wrote it alone.
//
// Two keys of equal hash would make it err. There are n m / 2^64 such pairs to be
// expected among n keys of a store and m that are asked for, one in ten million for
// a million of each; the harness counts false positives, and there being none is an
// identity that it checks.
package oracle

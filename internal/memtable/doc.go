// Package memtable holds the newest writes of a store, sorted, in memory: a
// skiplist whose nodes live in one arena of fixed size.
//
// Inserts run concurrently with each other and with all reads, without locks. A
// write becomes visible at once and as a whole; nothing is ever changed or
// removed. Readers see a sorted list at every instant, with every entry whose
// Add had returned when they looked.
//
// The arena holds no pointers, so the garbage collector never scans it. It is
// released as a whole when the last reference to its Memtable is gone: keys and
// values that alias the arena stay valid as long as the Memtable is reachable.
//
// A memtable stores points (values and point tombstones) in the order of
// base.Compare. Range tombstones are kept elsewhere by the caller.
//
// # Sources
//
// The list is W. Pugh, "Skip Lists: A Probabilistic Alternative to Balanced
// Trees", CACM 33(6), 1990. Linking from the bottom up by compare-and-swap, with
// no deletion, is the insertion half of M. Herlihy and N. Shavit, "The Art of
// Multiprocessor Programming", section 14.4. The arena and its offsets follow
// the practice of LevelDB, RocksDB and Pebble.
package memtable

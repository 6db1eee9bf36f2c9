// Package memtable holds the newest writes of a store, sorted, in memory: a skiplist with its nodes
// in one arena of fixed size.
//
// Inserts run concurrently with each other and with all reads, without locks. A write becomes
// visible at once and as a whole; nothing is ever changed or removed. Readers see a sorted list at
// every instant, with all entries of the Adds that have returned.
//
// Lookups of one key do not search the list. A hash index leads to the newest version of a key, or
// says that there is none, at the cost of one cache miss (index.go). The list is for order:
// iterators, versions, and the few keys that the index has no room for.
//
// Arena and index hold no pointers, so the garbage collector never scans them. They are released with the last
// reference to the Memtable: keys and values that alias the arena stay valid as long as the Memtable is reachable.
//
// Points (values, operands and point tombstones) are sorted by base.Compare. Range tombstones are in a list of their
// own (tombstones.go): they are few, and a lookup needs them cut into fragments. Apply adds a whole batch (batch.go).
// Some of a key's many operands have a fold, which saves readers the rest (fold.go).
//
// # Sources
//
// The list is W. Pugh, "Skip Lists: A Probabilistic Alternative to Balanced Trees", CACM 33(6), 1990. Linking from the
// bottom up by compare-and-swap, with no deletion, is the insertion half of M. Herlihy and N. Shavit, "The Art of
// Multiprocessor Programming", section 14.4. The arena and its offsets follow the practice of LevelDB, RocksDB and
// Pebble.
package memtable

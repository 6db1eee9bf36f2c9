package budget

// MinMemory is the smallest limit of memory, in bytes. It leaves room for three small memtables, a cache
// and a few files.
const MinMemory = 4 << 20

// MinMemtable is the smallest memtable, in bytes.
const MinMemtable = 64 << 10

// ThreadMemory is how much of a limit there must be for each thread that compacts, in bytes.
const ThreadMemory = 16 << 20

// MaxParts bounds what iterators on object stores prefetch, all together, in bytes.
const MaxParts = 64 << 20

// Buffers returns how many bytes of a limit are for what flushes and compactions hold. That is above all
// the hashes of a new file's keys, of which its filter is made.
func Buffers(limit int64) int64 { return min(limit/8, 16<<20) }

// DefaultFalsePositives is what 16,384 false positives take, their keys aside. It saves five sixths of the
// blocks that lookups of absent keys by a Zipf law read (docs/study.md).
const DefaultFalsePositives = 256 << 10

// FalsePositives returns how much of a limit is for the memory of false positives, in bytes: a 1024th,
// and at least one set of slots. With the keys it is six times as much.
func FalsePositives(limit int64) int64 {
	return min(max(limit/1024, MinFalsePositives), DefaultFalsePositives)
}

// MinFalsePositives is one set of slots, in bytes.
const MinFalsePositives = 128

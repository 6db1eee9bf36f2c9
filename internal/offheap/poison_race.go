//go:build race

package offheap

// largestWatched is the size up to which regions are in the heap, in bytes: the race detector
// watches no other memory. What it keeps of the heap is several times as large, whether that is
// used or not, so that each store with memtables and a cache of the usual size would cost some
// 500 MiB. Those are mapped: who uses them after they are freed crashes.
const largestWatched = 8 << 20

// Poisons says whether Poison does anything.
const Poisons = true

// Poison overwrites memory that is given up: who still reads it is found out, by the race
// detector or by what is read.
func Poison(b []byte) {
	if len(b) == 0 {
		return
	}
	b[0] = 0xdb
	for n := 1; n < len(b); n *= 2 { // by copies, of which the race detector notes ranges, not bytes
		copy(b[n:], b[:n])
	}
}

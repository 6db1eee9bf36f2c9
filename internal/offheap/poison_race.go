//go:build race

package offheap

// largestWatched is the size up to which regions are in the heap, in bytes: the race detector watches no other memory.
// Its shadow of the heap is several times as large, used or not, so each store with memtables and a cache of the usual
// size would cost some 500 MiB. Larger regions are mapped: a use after they are freed crashes.
const largestWatched = 8 << 20

// Poisons says whether Poison does anything.
const Poisons = true

// Poison overwrites released memory. A later read shows, by the race detector or by what is read.
func Poison(b []byte) {
	if len(b) == 0 {
		return
	}
	b[0] = 0xdb
	for n := 1; n < len(b); n *= 2 { // by copies, of which the race detector notes ranges, not bytes
		copy(b[n:], b[:n])
	}
}

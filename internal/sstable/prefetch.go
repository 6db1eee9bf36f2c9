package sstable

// A lookup in a cached block reads its last bytes, then a slot and a restart, then an entry and its value: cache lines
// that are close together, each of which leads to the next. A miss takes a hundred times as long as the steps in
// between, so the lines are asked for in two groups before they are needed.

const cacheLine = 64

// prefetchTail asks for the lines that hold the slots, restarts and last bytes of an ordinary block.
func prefetchTail(data []byte) {
	if n := len(data); n > 3*cacheLine {
		prefetch(data[n-cacheLine], data[n-2*cacheLine], data[n-3*cacheLine])
	}
}

// prefetchEntry asks for the lines of the entry at offset, if it is not long.
func prefetchEntry(entries []byte, offset int) {
	if end := offset + 2*cacheLine; end < len(entries) {
		prefetch(entries[offset], entries[offset+cacheLine], entries[end])
	}
}

// prefetch loads its arguments' cache lines, and does not wait for them. A compiler that
// inlined it would drop the loads.
//
//go:noinline
func prefetch(_, _, _ byte) {}

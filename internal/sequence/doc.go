// Package sequence keeps a sequence of entries in an object store, with one writer at a time, on any machine.
//
// A [Sequence] is objects in slots numbered 1, 2, and so on, each put by create-if-absent. An entry is data, or a
// fence. A new writer puts a fence into the next free slot, which is its epoch. The writer before finds that slot taken
// when it puts its next entry, and has to stop: it is fenced. A [Writer] puts one entry at a time, each into the slot
// after the one before. So the sequence has no holes, and a new writer finds every entry that the one before knew to be
// durable.
//
// Old data is deleted. But fences are never deleted: 80 bytes each, one for each time that a store was opened. So a
// writer that stalls before it puts an entry, for however long, still finds its successor's fence in that slot. A slot
// that held data may become free, and a request that was delayed may put that data back: it is then below newer data,
// where only [Sequence.Trim] lists, which deletes it again. A new writer may stall between reading the tail and putting
// its fence, and then fence such a slot. So it reads the tail again after putting the fence.
//
// Nothing depends on a clock, or on listings of recent objects, with one exception: Trim must keep data until newer
// data is older than listings lag. Stores whose listings do not lag need no such time.
//
// Object stores bill by requests, so every method says how many it sends. objstore.WithCounters counts them.
package sequence

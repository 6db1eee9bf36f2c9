// Package remote keeps a store's directory in an object store: an [FS] whose sorted files and blob files are objects
// ([Tables]), and whose manifests and logs ([Logs]) are a sequence with one writer at a time, wherever it runs.
//
// A [Sequence] is objects in slots numbered from 1 on, each put by create-if-absent. An entry is data, or a fence. Who
// opens the sequence for writing puts a fence into the next free slot, which is its epoch. Who was writing before
// finds that slot taken when it puts its next entry, and has to stop: it is fenced. As a [Writer] puts one entry at a
// time, each into the slot after the one before, what is there has no holes, and whoever fences it has found all that
// it was told is durable.
//
// Old data is deleted. A writer that stalls before it puts an entry, for however long, still finds its successor's
// fence in that slot, because fences are never deleted: 80 bytes each, one for each time that a store was opened. A
// slot that held data may become free, and a request that was delayed may put that data back: it then stands below
// newer data, where nobody looks but [Sequence.Trim], which deletes it again. Who has looked for the end, and stalls
// before it puts its fence, may put that into such a slot: so it looks once more when it has, before it is a writer.
//
// Nothing depends on a clock, and nothing on listings for what was put lately, with one exception: Trim must leave
// alone what was followed by newer data for less time than listings lag, and the collector of sorted files for twice as
// long, for the sake of checkpoints. Stores whose listings do not lag need no such time.
//
// A store has branches, each with a sequence and sorted files of its own, and checkpoints, which share files with each
// other. What is put, seen and deleted in which order, so that nobody loses a file, is in docs/adr/0024.
//
// Requests are what an object store is paid for, so every method says how many it sends. They are not counted here:
// see objstore.WithCounters.
package remote

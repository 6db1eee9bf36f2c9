// Package remote keeps a store's directory in an object store: an [FS]. Its sorted files and blob files are objects
// ([Tables]). Its manifests and logs ([Logs]) are a sequence with one writer at a time, on any machine.
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
// where only [Sequence.Trim] looks, which deletes it again. A new writer may stall between finding the end and putting
// its fence, and then fence such a slot. So it looks for the end again after putting the fence.
//
// Nothing depends on a clock, or on listings of recent objects, with one exception: deletion. Trim must keep data until
// newer data is older than listings lag. The collector of sorted files must wait twice as long, for the sake of
// checkpoints. Stores whose listings do not lag need no such time.
//
// A store has branches, each with a sequence and sorted files of its own, and checkpoints, which share files with each
// other. docs/adr/0024 gives the order of puts, reads and deletions that keeps every needed file.
//
// Object stores bill by requests, so every method says how many it sends. objstore.WithCounters counts them.
package remote

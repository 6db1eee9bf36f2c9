// Package kv is an embedded, ordered key-value store.
//
//	db, err := kv.Open("data", nil)
//	err = db.Set([]byte("key"), []byte("value"), nil) // durable on return
//	value, err := db.Get([]byte("key"))
//	err = db.Close()
//
// The store is a log-structured merge tree. Writes go to a write-ahead log and to a sorted table in memory; full
// memtables become sorted files, which compaction merges in the background. Every file carries a filter. A lookup
// hashes its key once and looks in memory first: in memtables, then at the bounds, the filter and the index of each
// file. It reads a block only when the key is very likely there. That holds on every level, including the last.
//
// # Reading
//
// [DB.Get] copies a value, [DB.GetSize] and [DB.Expiry] tell its length and its end without a copy, and
// [DB.MultiGet] looks many keys up at once. [DB.All] and [DB.Backward] loop over entries in order:
//
//	var err error
//	for key, value := range db.All(&kv.IterOptions{Prefix: []byte("user/")}, &err) {
//		...
//	}
//
// [DB.NewIter] returns an iterator, which seeks and moves both ways. With bounds it skips files that have no keys
// between them, where filters tell: [Options.Prefix], [Options.RangeFilter]. A Snapshot and a Tx read in the same ways.
//
// # Durability
//
// A write with [Sync] (the default) is on stable storage when it returns. One with [NoSync] is with the operating
// system and survives a crash of the process. One with [Async] may be lost with the process. What remains is always a
// prefix of the writes: never a hole, never half a batch. [DB.Sync] makes durable what was written so far.
//
// # Transactions
//
// [DB.Update] and [DB.View] run a function in a transaction, [DB.Begin] starts one. A transaction reads the store as it
// was when it began, and its own writes. It commits if nothing that it read, including ranges, was written meanwhile,
// and fails with [ErrConflict] otherwise: transactions are serializable. Plain writes neither wait for transactions nor
// fail because of them. [Writer] is what a Tx and a [Batch] share; [Batch.Replay] writes what one batch has to another,
// to a transaction, or to an application's own.
//
// # Operands
//
// [DB.Merge] writes an operand, such as an increment, without reading what is there. [Options.Merger] says how operands
// and values are combined: [Int64Add], [Append], or any associative function. Lookups and iterators combine operands as
// they read them; flushes and compactions combine them for good. Transactions that only merge into a key do not
// conflict over it.
//
// # Expiry
//
// [DB.SetTTL] writes a value that expires after a while, [DB.SetUntil] one that expires at a moment. It is no longer
// visible once [Options.Clock] has reached its end, and compaction drops it like a deleted one. [DB.Expiry] tells when.
//
// # Memory
//
// [Options.MemoryLimit] bounds memtables, cache, filters and indexes together; [Small] sets it for small stores.
//
// # Concurrency
//
// A DB and a Snapshot are safe for concurrent use. A Batch, an Iterator and a Tx belong to
// one goroutine. The store copies slices that it is given. Slices that Get returns are the
// caller's; those of an Iterator and of loops are valid until the next move.
//
// # Several processes
//
// One process at a time writes a store: others get [ErrLocked], or wait for the lock with
// [OpenContext]. [OpenReadOnly] reads while the writer writes: it opens a view of the
// store at one recent moment, which [DB.Refresh] brings up to date.
//
// # Object storage
//
// [Options.Objects] has a store live in an object store instead of a directory: sorted files, lists of files and the
// log. Package kv/objects has the settings of such a store. To open it for writing takes it over: the writer before
// gets objects.ErrFenced. Until that one writes, it may not notice, and reads what it has: Objects.MaxStaleness bounds
// for how long.
//
// # Waiting
//
// Methods and functions that may wait long take a context. Open, Update, Commit and Close have a
// variant that does, such as [Batch.CommitContext]. If the error of a commit matches that of the
// context, nothing was written, and nothing will be.
//
// # Errors
//
// Errors match the sentinels of this package with errors.Is. Damage is reported as a [CorruptionError], which names the
// file, the offset and the command that examines it. A write that fails, or a flush or compaction that cannot go on,
// makes the store read-only. Every later write returns [ErrReadOnly] with the cause, and reads go on.
package kv

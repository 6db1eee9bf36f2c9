// Package siftraft keeps the state of a node of github.com/hashicorp/raft in SiftKV.
//
//	store, err := siftraft.Open(filepath.Join(dir, "log"), nil)    // raft's LogStore and StableStore
//	fsm, err := siftraft.OpenFSM(filepath.Join(dir, "state"), nil) // its FSM: the replicated key-value store
//	node, err := raft.NewRaft(conf, fsm, store, /* and */ store, snapshots, transport)
//
// Either may be used without the other.
//
// # The log
//
// A [Store] is a log and a stable store in one kv.DB, of its own or under a prefix of the host's. StoreLogs returns
// when its entries are on stable storage: writers who come together share a sync, and a batch costs one. The ends of
// the log are in memory. Removing entries, a million or one, is one write: the compaction of the DB takes them away
// in the background. It tells raft that it is monotonic, so that raft removes all of a log that a snapshot has
// replaced.
//
// # The state
//
// An [FSM] is a kv.DB to which the entries that raft commits are applied: [Command]s, or what the host makes of
// entries in FSMOptions.Apply. A batch of entries is one write, which has the index of the last one in it: an entry is
// applied once, however often raft brings it. A snapshot is a checkpoint, links to files that never change, which is
// written to raft's snapshot store as a checksummed stream while entries go on being applied. A restore makes a
// store beside the one that is there, and puts it in its place in one step. [FSM.View] reads the state.
//
// # Why the state is written without syncs
//
// By default what is applied is handed to the operating system and not synced (kv.NoSync). Nothing acknowledged is lost
// by that:
//
//   - An entry is applied when it is committed: it is on stable storage in the logs of a majority, and in this
//     node's own log, whose StoreLogs syncs.
//   - After a crash the state is that of a moment before: kv keeps a prefix of the writes, and each write has the
//     index up to which it goes. What came after it, raft brings again: it begins at the last snapshot, or
//     at the beginning of the log if there is none, and the FSM passes over what it has.
//   - Raft removes entries from the log only up to a snapshot, when the snapshot is on stable storage in the snapshot
//     store. What the state had applied at that moment is then durable here too, as the checkpoint has flushed it. So
//     the state is never behind the beginning of the log by a crash, be it read from a snapshot at the start, which
//     is raft's default, or kept: see [FSM.CatchUp].
//   - A snapshot from another node is in the snapshot store before it is restored. A crash in between leaves the
//     older state, and raft, or CatchUp, restores it at the next start.
//
// What is committed and cannot be written, because the disk is full or broken, ends the work of the FSM rather than
// being left out: see [FSM.Err].
//
// # Several goroutines
//
// Raft calls its stores and its FSM as it likes. A Store is safe for concurrent use. Of an FSM, raft calls Apply,
// ApplyBatch, Snapshot and Restore from one goroutine, and nobody else may; the rest is safe for concurrent use.
package siftraft

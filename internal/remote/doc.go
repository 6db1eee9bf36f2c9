// Package remote keeps a store's directory in an object store: an [FS]. Its sorted files and blob files are objects
// ([Tables]). Its manifests and logs ([Logs]) are entries of a sequence.Sequence, which has one writer at a time.
//
// Nothing depends on a clock, with one exception: deletion. The collector of sorted files must wait twice as long as
// listings lag, for the sake of checkpoints. Stores whose listings do not lag need no such time.
//
// A store has branches, each with a sequence and sorted files of its own, and checkpoints, which share files with each
// other. docs/adr/0024 gives the order of puts, reads and deletions that keeps every needed file.
//
// Object stores bill by requests, so every method says how many it sends. objstore.WithCounters counts them.
package remote

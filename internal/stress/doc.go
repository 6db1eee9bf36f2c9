// Package stress is a test that tries to break a store, in the manner of RocksDB's
// db_stress. Flags of the test binary turn TestStress into a run of any length; see
// docs/stress.md.
//
// Several goroutines do everything that the API of package kv can, on a disk in memory
// (Disk) whose calls fail, tear, take time and lie as a plan drawn from a seed says.
// The power is cut, or the process killed, at any moment: also during recovery, resuming and
// Close. What was acknowledged is kept in a model outside. After each opening the whole
// store is held against it.
//
// # The model
//
// Each worker writes keys of its own, and every operation leaves its number under one of
// them. So what a store holds of a worker's keys says which operation was its last, and all
// of it must be as after that operation: all that were acknowledged before are in it, none
// that failed before, and the last one whole. Beyond that, with times taken from a common
// counter (see verdict_test.go):
//
//   - an operation that was acknowledged as durable is there: with Sync; or before a Flush,
//     Compact, Checkpoint, Ingest or Close that succeeded began; or with NoSync, if only the
//     process died;
//   - if an operation is lost, then so is everything that began after it was acknowledged;
//   - an operation that failed with kv.ErrNotDurable is visible, and counts as acknowledged
//     with Async;
//   - an operation that failed otherwise is not there if a write succeeded that began later:
//     the store had resumed by then;
//   - transactions that increment common counters have each value once.
//
// # Lives, rounds, and replaying them
//
// A life is a store from its creation on, in a number of rounds: each opens the store with
// other options, checks it, disturbs it, and ends it in one of several ways. All of a life
// is drawn from its seed. What goroutines do beside each other is not, so that a seed makes
// a finding likely to come again rather than certain; with one worker, only the store's own
// goroutines are beside it.
package stress

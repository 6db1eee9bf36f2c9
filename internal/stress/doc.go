// Package stress is a test that tries to break a store, in the manner of RocksDB's
// db_stress. Flags of the test binary turn TestStress into a run of any length; see
// docs/stress.md.
//
// Several goroutines do everything that the API of package kv can, on a disk in memory (Disk) whose
// calls fail, tear, take time and lie as a plan drawn from a seed says. The power is cut, or the
// process killed, at any moment: also during recovery, resuming and Close. What was acknowledged is
// kept in a model outside. After each opening the whole store is compared with it.
//
// # The model
//
// Each worker writes keys of its own, and every operation leaves its number under one of them. So
// the content of a worker's keys tells the last operation in the store. It must be the result of
// that operation as a whole, and of exactly those before it that were acknowledged. In addition,
// with times taken from a common counter (see verdict_test.go):
//
//   - An operation that was acknowledged as durable is there: with Sync; or before a Flush,
//     Compact, Checkpoint, Ingest or Close that succeeded began; or with NoSync, if only the
//     process died.
//   - If an operation is lost, then so is everything that began after it was acknowledged.
//   - An operation that failed with kv.ErrNotDurable is visible, and counts as acknowledged with
//     Async.
//   - An operation that failed otherwise is not there if a write that began later succeeded: the
//     store had resumed by then.
//   - Transactions that increment common counters have each value once.
//   - The snapshot and the changes of a slot are the store after one of its operations, key by key, whatever happens to
//     the store in between. No operation is missing or comes twice, and none comes that a crash takes back. A slot is
//     lost only for a reason that docs/changes.md has, and never silently.
//
// # Lives, rounds, and replaying them
//
// A life is a new store in a number of rounds: each opens the store with other options, checks it,
// disturbs it, and ends it in one of several ways. All of a life is drawn from its seed, except the
// scheduling of goroutines. So a seed makes a finding likely to recur, not certain; with one
// worker, only the store's own goroutines run in parallel.
package stress

// Package commit makes batches durable and visible, in the order of their sequence
// numbers.
//
// A Pipeline turns concurrent commits into groups. The first writer to arrive leads: it
// takes everybody who is waiting, writes one record per batch to the write-ahead log with
// one write call, syncs once if anybody asked for that, sees to it that all batches are in
// the memtable, and makes them visible together. Who arrives meanwhile waits for the next
// group. So all writers that wait for a sync share its cost, and a lone writer pays for no
// hand-over.
//
// The pipeline owns the last sequence number, the log and the logs that ended before it
// and are not synced. Whoever leads, and nobody else, changes them: a group, or a function
// that runs between groups (Pipeline.Exclusive).
package commit

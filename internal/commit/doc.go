// Package commit makes batches durable and visible, in the order of their sequence numbers.
//
// A Pipeline turns concurrent commits into groups. The first writer to arrive leads. It takes all waiting writers,
// writes one record per batch to the write-ahead log with one write call, and makes sure that all batches are in the
// memtable. It makes visible what needs no sync, and passes leadership on. Then one of the writers that need a sync
// does it for all, in parallel with the next groups. So all writers that wait for a sync share its cost, the others do
// not wait for it, and a lone writer pays for no hand-over.
//
// A sync without a write (Pipeline.SyncVisible) takes the same way.
//
// A sync that is requested while one is under way belongs to the next group that syncs: see gate. What is visible is
// always a prefix of what was written, and what is durable too. Once a log has failed, nothing becomes visible before
// all logs are replaced: see logs.
//
// If a function of the application ends the leader's goroutine, by a panic or runtime.Goexit, leadership is passed on
// as well. The store has failed for good then.
//
// The pipeline owns the last sequence number, the log and the logs that ended before it and are not synced. Only the
// leader changes the number and the log: a group's, or a function that runs alone (Pipeline.Exclusive).
package commit

// Package commit makes batches durable and visible, in the order of their sequence
// numbers.
//
// A Pipeline turns concurrent commits into groups. The first writer to arrive leads: it
// takes everybody who is waiting, writes one record per batch to the write-ahead log with
// one write call, sees to it that all batches are in the memtable, makes visible what wants
// no sync, and passes leadership on. Then one of those who asked for a sync does it for
// all, beside the next groups. So all writers that wait for a sync share its cost, the
// others do not wait for it, and a lone writer pays for no hand-over.
//
// Who wants a sync and writes nothing (Pipeline.SyncVisible) takes the same way.
//
// A sync that is asked for while one is under way is one of the next group that syncs: see
// gate. What is visible is always a prefix of what was written, and what is durable too.
// Once a log has failed, nothing becomes visible before all logs are replaced: see logs.
//
// A leader whose goroutine a function of the application ends, by a panic or runtime.Goexit, passes leadership on as
// well. The store has failed for good then.
//
// The pipeline owns the last sequence number, the log and the logs that ended before it
// and are not synced. Whoever leads, and nobody else, changes the number and the log: a
// group, or a function that runs alone (Pipeline.Exclusive).
package commit

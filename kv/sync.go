package kv

import (
	"cmp"
	"context"
)

// Sync returns when all writes that were acknowledged before the call are on stable storage: those with NoSync and
// Async too, and what was committed before them. It does what a commit with Sync does for the writes before it,
// without a write. Calls that come together, and commits with Sync, share one sync of the log, and writers go on
// meanwhile. If everything is durable already, it costs none.
//
// In an object store, stable storage is where the log is: the object store, or the local disk with Objects.LocalLog.
//
// Errors are those of a commit with Sync. If the log cannot be synced, the store takes no more
// writes, and the error matches ErrReadOnly. Acknowledged writes stay visible, and are durable
// once the store takes writes again. They are lost if the process or the machine ends before.
// A store that is read-only returns ErrReadOnly, one that is closed ErrClosed.
//
// Sync waits for other writers no longer than ctx lasts. Once its turn has come, it waits for the disk alone, and
// returns the outcome. An error that matches ctx.Err() says nothing about what is durable.
func (d *DB) Sync(ctx context.Context) error {
	if err := cmp.Or(d.writable(), d.readable()); err != nil {
		return err
	}
	return d.commits.SyncVisible(ctx)
}

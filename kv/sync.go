package kv

import (
	"cmp"
	"context"
)

// Sync returns when all writes that were acknowledged before the call are on stable storage:
// those with NoSync and Async, and what they were committed after. It is what a commit with
// Sync does for the writes before it, without a write: calls that come together, and commits
// with Sync, share one sync of the log, and writers go on beside it. If everything is durable
// already, it costs none.
//
// Of a store in an object store, stable storage is where the log is: the object store, or the
// local disk with Objects.LocalLog.
//
// Errors are those of a commit with Sync. If the log cannot be synced, the store takes no
// writes from then on, and the error matches ErrReadOnly. What was acknowledged stays visible,
// and is durable once the store takes writes again; it is lost if the process or the machine
// ends before. A store that is read-only returns ErrReadOnly, one that is closed ErrClosed.
func (d *DB) Sync() error { return d.SyncContext(context.Background()) }

// SyncContext is Sync for a caller who waits for other writers no longer than ctx lasts. From
// the moment that its turn has come it waits for the disk alone, and returns the outcome. An
// error that matches ctx.Err() says nothing about what is durable.
func (d *DB) SyncContext(ctx context.Context) error {
	if err := cmp.Or(d.writable(), d.readable()); err != nil {
		return err
	}
	return d.commits.SyncVisible(ctx)
}

package kv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/internal/vfs"
)

// A LockedError says who has a store open: the lock file, and the holder's process
// id where it is known. It matches ErrLocked.
type LockedError = vfs.LockedError

// Waits for a lock start with firstLockWait and double up to lastLockWait. Asking
// whether a lock is free costs a few microseconds.
const (
	firstLockWait = time.Millisecond
	lastLockWait  = 100 * time.Millisecond
)

// OpenContext is Open for a caller who would rather wait than be told that the
// store is open elsewhere: it waits until the lock is free, or ctx ends. The error
// then matches ErrLocked and ctx.Err(), and has a *LockedError that names the
// holder. Several that wait for one lock get it in no particular order.
func OpenContext(ctx context.Context, dir string, o *Options) (*DB, error) {
	if ctx.Err() != nil {
		return nil, givenUp(ctx, "the store was not opened")
	}
	return openStore(dir, o, func(d *DB) error { return d.waitLock(ctx) })
}

// waitLock locks the directory, as soon as it can and before ctx ends.
func (d *DB) waitLock(ctx context.Context) error {
	for wait := firstLockWait; ; wait = min(2*wait, lastLockWait) {
		err := d.tryLock()
		if !errors.Is(err, ErrLocked) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", givenUp(ctx, "waited for the store's lock"), err)
		}
	}
}

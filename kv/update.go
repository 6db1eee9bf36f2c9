package kv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/siftkv/siftkv/internal/base"
)

const (
	// maxAttempts is how often Update runs its function at the most.
	maxAttempts = 64
	// Before attempt n, Update sleeps for a random time below firstBackoff << n, and
	// never longer than maxBackoff. One of those that conflict with each other is
	// committed in any case; the time lets them come one after the other.
	firstBackoff = 20 * time.Microsecond
	maxBackoff   = 20 * time.Millisecond
)

// View runs fn in a transaction that reads alone: all that fn sees is from one
// moment. It returns fn's error. The transaction ends with fn, and so do its
// iterators, which fn closes.
func (d *DB) View(fn func(tx *Tx) error) error {
	t, err := d.newTx(false)
	if err != nil {
		return err
	}
	defer t.end()
	return fn(t)
}

// Update runs fn in a transaction and commits it with Sync. If fn returns an error,
// or panics, nothing is written, and Update returns the error, or panics.
//
// On ErrConflict it runs fn again in a new transaction, which sees what was written
// meanwhile: up to 64 times, after pauses of random length that grow up to 20 ms.
// Then it returns ErrConflict. So fn should do nothing beside its transaction that
// must not be done twice. For another durability, fn may commit the transaction
// itself, as the last thing it does, and return Commit's error.
func (d *DB) Update(fn func(tx *Tx) error) error { return d.UpdateContext(context.Background(), fn) }

// UpdateContext is Update for a caller who waits no longer than ctx lasts: neither in
// the commit, as Tx.CommitContext says, nor between attempts. The error then matches
// ctx.Err(), and nothing was written. It is fn's own affair to look at ctx.
func (d *DB) UpdateContext(ctx context.Context, fn func(tx *Tx) error) error {
	for n := 1; ; n++ {
		err := d.attempt(ctx, fn)
		if n == maxAttempts || !errors.Is(err, ErrConflict) {
			return err
		}
		select {
		case <-time.After(rand.N(min(firstBackoff<<min(n, 16), maxBackoff))):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", base.ContextError(ctx, "an update was to be tried again"), err)
		}
	}
}

// attempt is Update once.
func (d *DB) attempt(ctx context.Context, fn func(tx *Tx) error) error {
	t, err := d.newTx(true)
	if err != nil {
		return err
	}
	defer t.end()
	if err := fn(t); err != nil || t.done {
		return err
	}
	return t.CommitContext(ctx, Sync)
}

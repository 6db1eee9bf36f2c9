package kv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/cursor"
	"github.com/siftkv/siftkv/internal/readset"
	"github.com/siftkv/siftkv/internal/version"
)

// A Tx is a transaction: reads and writes that take effect as if they all happened at one moment, or not at all. It
// reads the store as it was when it began, and its own writes. Commit succeeds if nothing that it read has been
// written since, and fails with ErrConflict otherwise: then nothing was written, and the whole may be tried again. So
// the transactions that are committed, and all other writes, are as if they had run one after the other, in the order
// of their commits. This is serializable snapshot isolation, in the optimistic manner of Kung and Robinson.
//
// It has read every key that it looked up, there or not, and every range of keys that its iterators passed over. A
// transaction that only reads, or only writes, never conflicts; and nothing waits for a transaction.
//
// While a transaction is open, old versions of keys pile up: end each by Commit or
// Discard, soon. A Tx and its iterators belong to one goroutine.
type Tx struct {
	view     readView         // of the store as it was when it began
	version  *version.Version // the current one when it began; for comparison
	writable bool
	done     bool

	writes txWrites
	reads  txReads
	// overlays are those of its iterators, and those of closed ones, which others use again.
	overlays []*cursor.Overlay
}

// Begin starts a transaction; one that is not writable reads alone. End it by
// Commit or Discard. View and Update see to that themselves.
func (d *DB) Begin(writable bool) (*Tx, error) {
	if d.closed.Load() {
		return nil, ErrClosed
	}
	if writable && d.opts.ReadOnly {
		return nil, ErrReadOnly
	}
	if err := d.readable(); err != nil {
		return nil, err
	}
	t := &Tx{view: readView{d: d}, writable: writable}
	t.view.tx = t
	t.writes.batch.db = d
	if d.follower != nil {
		s := &Snapshot{view: readView{d: d}}
		if s.view.snap, t.view.snap = s, s; !s.pin() {
			return nil, ErrClosed
		}
	}
	d.mu.Lock()
	t.view.at, t.version = d.seq(), d.current
	if t.view.snap != nil {
		t.view.at = t.view.snap.view.at
	}
	t.reads = txReads{db: d, since: t.view.at}
	if writable {
		t.reads.Limit = MaxBatchSize
	}
	d.snapshots.add(t.view.at)
	d.mu.Unlock()
	d.handles.transactions.Add(t, d.opts.TraceOpens, 0)
	return t, nil
}

// end releases the transaction.
func (t *Tx) end() {
	if t.done {
		return
	}
	t.done = true
	d := t.view.d
	d.handles.transactions.Remove(t, d.opts.TraceOpens)
	d.mu.Lock()
	d.snapshots.remove(t.view.at)
	kept := t.version != d.current // unless a table came meanwhile, the snapshot kept nothing alive
	d.mu.Unlock()
	t.view.snap.unpin()
	if kept {
		d.scheduleCompactions()
	}
	// A program that keeps the Tx, or an iterator of it, keeps no more than that.
	t.version, t.view.snap, t.writes, t.overlays = nil, nil, txWrites{}, nil
	t.reads = txReads{Tracker: readset.Tracker{Err: ErrTxDone}}
}

// usable returns an error if the transaction has ended or the store is closed.
func (t *Tx) usable() error {
	switch {
	case t.done:
		return ErrTxDone
	case t.view.d.closed.Load():
		return ErrClosed
	}
	return nil
}

// Get returns a copy of the value of key, or ErrNotFound.
func (t *Tx) Get(key []byte) ([]byte, error) { return t.AppendGet(nil, key) }

// AppendGet appends the value of key to dst and returns the extended slice; dst
// as it was and ErrNotFound if there is no such key.
func (t *Tx) AppendGet(dst, key []byte) ([]byte, error) { return t.view.get(dst, key) }

// Has reports whether there is a value under key. After Merge there is one, and Has reads nothing of the store.
func (t *Tx) Has(key []byte) (bool, error) { return t.view.has(key) }

// MultiGet is DB.MultiGet for what the transaction reads: the store as it was when it began, and its own writes.
func (t *Tx) MultiGet(keys [][]byte) (values [][]byte, err error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	store := t.view
	store.tx = nil
	values = make([][]byte, len(keys))
	var rest [][]byte
	var at []int       // of rest, in keys
	var own [][][]byte // of rest, own operands over what the store has, newest first
	for i, key := range keys {
		l := lookup{key: key, want: true}
		done, err := t.view.inTx(&l)
		switch {
		case err == ErrNotFound: //nolint:errorlint // not one of a merger
		case err != nil:
			return nil, err
		case done:
			values[i] = l.dst
		default:
			rest, at, own = append(rest, key), append(at, i), append(own, l.chain.operands)
		}
	}
	got, err := store.multiGet(rest)
	if err != nil {
		return nil, err
	}
	for i, value := range got {
		if operands := own[i]; operands != nil {
			if value != nil {
				operands = append(operands, value)
			}
			slices.Reverse(operands)
			if value, err = t.view.d.operands.Value(rest[i], operands); err != nil {
				return nil, err
			}
			value = append([]byte{}, value...) // there is one, whatever the merger returned
		}
		values[at[i]] = value
	}
	return values, nil
}

// NewIter returns an iterator over what the transaction sees now: later writes of the transaction do not appear in it.
// It counts as read what the iterator passed over, keys of the transaction's own included, not all that is within its
// bounds. It does not outlive the transaction: after its end, moves fail with ErrTxDone. Close it all the same.
func (t *Tx) NewIter(o *IterOptions) (*Iterator, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	m, err := t.writes.memory()
	if err != nil {
		return nil, err
	}
	return t.view.iter(o, t.overlay(m))
}

// overlay returns an overlay of the own writes, which are in m, for an iterator.
func (t *Tx) overlay(m *memTable) *cursor.Overlay {
	last := ownSeq + base.SeqNum(t.writes.indexed.Count) - 1
	for _, o := range t.overlays {
		if o.Use(m, ownSeq, last, &t.reads.Tracker) {
			return o
		}
	}
	o := new(cursor.Overlay)
	o.Use(m, ownSeq, last, &t.reads.Tracker)
	t.overlays = append(t.overlays, o)
	return o
}

// Commit ends the transaction and makes its writes durable, to the requested level, and visible. With any error,
// ErrConflict included, the transaction has ended too, and nothing was written unless the disk failed. A transaction
// that wrote nothing never conflicts, whatever was written meanwhile.
func (t *Tx) Commit(o *WriteOptions) error { return t.CommitContext(context.Background(), o) }

// CommitContext is Commit that waits for other writers, a flush or a compaction no longer than ctx lasts. An error
// that matches ctx.Err() says that nothing was written, as that of Batch.CommitContext does.
func (t *Tx) CommitContext(ctx context.Context, o *WriteOptions) error {
	defer t.end()
	if err := t.usable(); err != nil {
		return err
	}
	b := &t.writes.batch
	if b.err != nil || b.Len() == 0 {
		return cmp.Or(b.err, t.view.d.readable())
	}
	err := t.commit(ctx, b, o)
	switch {
	case err == nil:
		t.view.d.counters.TxCommits.Add(1)
	case errors.Is(err, ErrConflict):
		t.view.d.counters.TxConflicts.Add(1)
	}
	return err
}

// commit commits the transaction's batch if nothing that it read was written since.
func (t *Tx) commit(ctx context.Context, b *Batch, o *WriteOptions) error {
	d, r := t.view.d, &t.reads
	for _, o := range t.overlays {
		o.Note()
	}
	switch {
	case r.Err != nil:
		return r.Err
	case r.Empty():
		return d.commit(ctx, b, nil, o)
	}
	r.Merge()
	if err := d.writable(); err != nil {
		return err
	}
	// In this order: a state that is acquired later has all these writes.
	seen := d.seq()
	if err := r.Validate(seen); err != nil {
		d.commits.AwaitSync() // of a write that is not visible yet: the next attempt must see it
		return err
	}
	r.since = seen
	return d.commit(ctx, b, r, o)
}

// Discard ends the transaction and forgets its writes. After Commit, or a second time, it does nothing: defer it.
func (t *Tx) Discard() error {
	t.end()
	return nil
}

const (
	maxAttempts = 64 // of Update
	// Before attempt n, Update sleeps for a random time below firstBackoff << n and maxBackoff. Conflicting ones come
	// one after the other then; one of them is committed in any case.
	firstBackoff = 20 * time.Microsecond
	maxBackoff   = 20 * time.Millisecond
)

// View runs fn in a transaction that reads alone: all that fn sees is from one moment. It returns fn's error. The
// transaction ends with fn, and so do its iterators, which fn closes.
func (d *DB) View(fn func(tx *Tx) error) error {
	t, err := d.Begin(false)
	if err != nil {
		return err
	}
	defer t.end()
	return fn(t)
}

// Update runs fn in a transaction and commits it with Sync. If fn returns an error,
// or panics, nothing is written, and Update returns the error, or panics.
//
// On ErrConflict it runs fn again in a new transaction, which sees what was written meanwhile. After 64 runs, with
// pauses of random length that grow up to 20 ms, it returns ErrConflict. So fn should do nothing outside its
// transaction that must not be done twice. For another durability, fn may commit the transaction itself, as the last
// thing it does, and return Commit's error.
func (d *DB) Update(fn func(tx *Tx) error) error { return d.UpdateContext(context.Background(), fn) }

// UpdateContext is Update that waits no longer than ctx lasts, in the commit, as Tx.CommitContext says, and between
// attempts. The error then matches ctx.Err(), and nothing was written. Fn must check ctx itself.
func (d *DB) UpdateContext(ctx context.Context, fn func(tx *Tx) error) error {
	for n := 1; ; n++ {
		err := d.attempt(ctx, fn)
		if n == maxAttempts || !errors.Is(err, ErrConflict) {
			return err
		}
		select {
		case <-time.After(rand.N(min(firstBackoff<<min(n, 16), maxBackoff))):
		case <-ctx.Done():
		}
		if ctx.Err() != nil { // also when both had come
			return fmt.Errorf("%w: %w", base.ContextError(ctx, "an update was to be tried again"), err)
		}
	}
}

// attempt is Update once.
func (d *DB) attempt(ctx context.Context, fn func(tx *Tx) error) error {
	t, err := d.Begin(true)
	if err != nil {
		return err
	}
	defer t.end()
	if err := fn(t); err != nil || t.done {
		return err
	}
	return t.CommitContext(ctx, Sync)
}

package kv

import (
	"context"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/version"
)

// A Tx is a transaction: reads and writes that take effect as if they all happened
// at one moment, or not at all. It reads the store as it was when it began, and its
// own writes. Commit succeeds if nothing that it read has been written since, and
// fails with ErrConflict otherwise: then nothing was written, and the whole may be
// tried again. So the transactions that are committed, and all other writes, are
// as if they had run one after the other, in the order of their commits
// (serializable snapshot isolation, in the optimistic manner of Kung and Robinson).
//
// What it read is every key that it looked up, there or not, and every range of
// keys that its iterators passed over. A transaction that only reads, or only
// writes, never conflicts; nor does anybody wait for a transaction.
//
// While a transaction is open, old versions of keys pile up: end each by Commit or
// Discard, soon. A Tx and its iterators belong to one goroutine.
type Tx struct {
	db       *DB
	seq      base.SeqNum      // what it reads is the store as of this write
	version  *version.Version // the current one when it began; for comparison
	pinned   *Snapshot        // of a store that follows a writer: what it reads; otherwise nil
	writable bool
	done     bool

	writes txWrites
	reads  readSet
	views  []*txView // of open iterators
}

// Begin starts a transaction; one that is not writable reads alone. End it by
// Commit or Discard. View and Update see to that themselves.
func (d *DB) Begin(writable bool) (*Tx, error) { return d.newTx(writable) }

func (d *DB) newTx(writable bool) (*Tx, error) {
	if d.closed.Load() {
		return nil, ErrClosed
	}
	if writable && d.opts.ReadOnly {
		return nil, ErrReadOnly
	}
	t := &Tx{db: d, writable: writable}
	t.writes.batch.db = d
	t.reads.limit, t.reads.db = MaxBatchSize, d
	if d.follower != nil {
		if t.pinned = (&Snapshot{db: d}); !t.pinned.pin() {
			return nil, ErrClosed
		}
	}
	d.mu.Lock()
	t.seq, t.version = d.seq(), d.current
	if t.pinned != nil {
		t.seq = t.pinned.seq
	}
	d.snapshots.add(t.seq)
	d.mu.Unlock()
	d.transactions.Add(t, d.opts.TraceOpens, 1)
	return t, nil
}

// end gives the transaction back.
func (t *Tx) end() {
	if t.done {
		return
	}
	t.done = true
	d := t.db
	d.transactions.Remove(t, d.opts.TraceOpens)
	d.mu.Lock()
	d.snapshots.remove(t.seq)
	// Unless a table came meanwhile, the snapshot kept nothing alive.
	if t.version != d.current {
		d.scheduleCompactionsLocked()
	}
	d.mu.Unlock()
	t.pinned.unpin()
	// Who keeps the Tx, or an iterator of it, keeps no more than that.
	t.version, t.pinned, t.writes, t.reads, t.views = nil, nil, txWrites{}, readSet{}, nil
}

// usable returns an error if the transaction has ended or the store is closed.
func (t *Tx) usable() error {
	switch {
	case t.done:
		return ErrTxDone
	case t.db.closed.Load():
		return ErrClosed
	}
	return nil
}

// Get returns a copy of the value of key, or ErrNotFound.
func (t *Tx) Get(key []byte) ([]byte, error) { return t.AppendGet(nil, key) }

// AppendGet appends the value of key to dst and returns the extended slice; dst
// as it was and ErrNotFound if there is no such key.
func (t *Tx) AppendGet(dst, key []byte) ([]byte, error) {
	dst, ok, err := t.get(dst, key, true)
	if err == nil && !ok {
		err = ErrNotFound
	}
	return dst, err
}

// Has reports whether there is a value under key.
func (t *Tx) Has(key []byte) (bool, error) {
	_, ok, err := t.get(nil, key, false)
	return ok, err
}

// get looks key up, among the transaction's own writes first: what these answer is
// not read from the store, and cannot conflict.
func (t *Tx) get(dst, key []byte, want bool) ([]byte, bool, error) {
	if err := t.usable(); err != nil {
		return dst, false, err
	}
	value, found, written, err := t.writes.get(key)
	if err != nil {
		return dst, false, err
	}
	if written {
		if found && want {
			dst = append(dst, value...)
			if dst == nil {
				dst = []byte{}
			}
		}
		return dst, found, nil
	}
	if t.writable {
		if err := t.reads.addKey(key); err != nil {
			return dst, false, err
		}
	}
	if t.pinned != nil {
		return t.pinned.getPinned(dst, key, want)
	}
	return t.db.get(dst, key, t.seq, want)
}

// NewIter returns an iterator over what the transaction sees now: later writes of
// the transaction do not appear in it. It counts as read what the iterator passed
// over, keys of the transaction's own included, not all that lies within its
// bounds. It does not outlive the transaction: after its end, moves fail with
// ErrTxDone. Close it all the same.
func (t *Tx) NewIter(o *IterOptions) (*Iterator, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	v, err := newTxView(t)
	if err != nil {
		return nil, err
	}
	var it *Iterator
	if t.pinned != nil {
		it, err = t.pinned.iterPinned(o, v)
	} else {
		it, err = t.db.newIter(o, t.seq, v)
	}
	if err == nil {
		t.views = append(t.views, v)
	}
	return it, err
}

// Set stores value under key. It copies both. Like those of a Batch, errors of
// Set, Delete and DeleteRange are returned by Commit as well.
func (t *Tx) Set(key, value []byte) error {
	if err := t.takesWrites(); err != nil {
		return err
	}
	return t.writes.batch.Set(key, value)
}

// Delete removes key. A key that is not there is no error, and was not read.
func (t *Tx) Delete(key []byte) error {
	if err := t.takesWrites(); err != nil {
		return err
	}
	return t.writes.batch.Delete(key)
}

// DeleteRange removes all keys of [lo, hi); a nil lo or hi has no bound.
func (t *Tx) DeleteRange(lo, hi []byte) error {
	if err := t.takesWrites(); err != nil {
		return err
	}
	return t.writes.batch.DeleteRange(lo, hi)
}

func (t *Tx) takesWrites() error {
	if err := t.usable(); err != nil {
		return err
	}
	if !t.writable {
		return ErrTxReadOnly
	}
	return nil
}

// Commit ends the transaction and makes its writes durable, to the level asked
// for, and visible. With any error, ErrConflict included, the transaction has
// ended too, and, but for a failing disk, nothing was written. A transaction that
// wrote nothing is given back, and was right whatever was written meanwhile.
func (t *Tx) Commit(o *WriteOptions) error { return t.CommitContext(context.Background(), o) }

// CommitContext is Commit for a caller who waits for other writers, a flush or a
// compaction no longer than ctx lasts. An error that matches ctx.Err() says that
// nothing was written, as that of Batch.CommitContext does.
func (t *Tx) CommitContext(ctx context.Context, o *WriteOptions) error {
	if err := t.usable(); err != nil {
		t.end()
		return err
	}
	defer t.end()
	b := &t.writes.batch
	if b.err != nil {
		return b.err
	}
	if b.Empty() {
		return nil
	}
	reads, err := t.sealReads()
	if err != nil {
		return err
	}
	return t.db.commitTx(ctx, b, reads, t.seq, o)
}

// Discard ends the transaction and forgets its writes. After Commit, and a second
// time, it does nothing, so that it can be deferred.
func (t *Tx) Discard() error {
	t.end()
	return nil
}

// sealReads returns all that the transaction read, or nil if that is nothing.
func (t *Tx) sealReads() (*readSet, error) {
	for _, v := range t.views {
		v.note()
	}
	if t.reads.err != nil {
		return nil, t.reads.err
	}
	if t.reads.empty() {
		return nil, nil
	}
	t.reads.merge()
	return &t.reads, nil
}

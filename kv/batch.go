package kv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/commit"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// A Batch collects writes that take effect together: a reader sees all of them or none, and so does recovery after a
// crash. Later writes of a batch win over earlier ones. A batch copies the keys and values it is given. It is not safe
// for concurrent use.
//
// An error of Set and its kin is returned by Commit as well, so that it need not be checked at every call.
//
// DB.NewBatch makes a batch. The zero Batch belongs to no store, and Commit refuses it.
type Batch struct {
	db        *DB
	repr      commit.Batch
	err       error
	committed bool // since Reset
}

// errNoStore is the error for a batch that DB.NewBatch has not made, or that of a nil *DB.
var errNoStore = errors.New("siftkv: the batch belongs to no store: make it with NewBatch of a DB that is not nil")

// NewBatch returns an empty batch.
func (d *DB) NewBatch() *Batch { return &Batch{db: d} }

// Len returns the number of writes in the batch.
func (b *Batch) Len() int { return b.repr.Len() }

// Size returns the bytes that the batch takes in the log: its keys and values, and a few for each write. It is 0 if
// there are no writes. MaxBatchSize bounds another number, that of the bytes in memory.
func (b *Batch) Size() int { return b.repr.Size() }

// Reset empties the batch for reuse. It keeps its memory, unless the batch was committed and took half of a memtable
// or more: that memory is the store's until it is flushed.
func (b *Batch) Reset() {
	b.repr.Reset()
	b.repr.Arena, b.repr.Held, b.err, b.committed = 0, nil, nil, false
}

// Set stores value under key.
func (b *Batch) Set(key, value []byte) error {
	return b.add(errors.Join(checkKey(key), checkValue(value)), base.KindSet, key, value)
}

// Delete removes key. A key that is not there is no error.
func (b *Batch) Delete(key []byte) error { return b.add(checkKey(key), base.KindDelete, key, nil) }

// DeleteRange removes all keys of [lo, hi); a nil lo or hi has no bound. It costs
// one entry, however many keys there are.
func (b *Batch) DeleteRange(lo, hi []byte) error {
	err := errors.Join(checkKey(lo), checkKey(hi))
	if err == nil && (rangedel.Tombstone{Start: lo, End: hi}).Empty() {
		return b.err
	}
	return b.add(err, base.KindRangeDelete, lo, rangedel.AppendEnd(nil, hi))
}

// DeletePrefix removes all keys that begin with prefix, as DeleteRange does. An empty prefix is an error.
func (b *Batch) DeletePrefix(prefix []byte) error {
	if len(prefix) == 0 {
		return b.add(errEmptyPrefix, base.KindRangeDelete, nil, nil)
	}
	return b.DeleteRange(prefix, PrefixEnd(prefix))
}

// Merge combines operand with the value of key, as DB.Merge does.
func (b *Batch) Merge(key, operand []byte) error {
	err := b.db.mergeable()
	if err == nil {
		err = errors.Join(checkKey(key), checkValue(operand), b.db.operands.Check(key, operand))
	}
	return b.add(err, base.KindMerge, key, operand)
}

// mergeable returns an error if the store does not take operands.
func (d *DB) mergeable() error {
	switch {
	case d == nil:
		return errNoStore
	case d.opts.ReadOnly:
		return ErrReadOnly
	case d.operands.Merger == nil:
		return fmt.Errorf("%w: Merge needs Options.Merger", ErrNoMerger)
	}
	return nil
}

// SetTTL stores value under key until ttl has passed, as DB.SetTTL does. The time
// counts from this call, not from Commit.
func (b *Batch) SetTTL(key, value []byte, ttl time.Duration) error {
	if b.db == nil {
		return b.fail(errNoStore) // it has no clock
	}
	expiry, err := b.db.clock.after(ttl)
	err = errors.Join(err, checkKey(key), checkValue(value))
	return b.add(err, base.KindSetTTL, key, base.AppendExpiry(nil, expiry), value...)
}

// SetUntil stores value under key until expiry, as DB.SetUntil does.
func (b *Batch) SetUntil(key, value []byte, expiry time.Time) error {
	if expiry.IsZero() {
		return b.Set(key, value)
	}
	at, err := base.ExpiryAt(expiry)
	err = errors.Join(err, checkKey(key), checkValue(value))
	if at == 0 {
		return b.add(err, base.KindDelete, key, nil)
	}
	return b.add(err, base.KindSetTTL, key, base.AppendExpiry(nil, at), value...)
}

func (b *Batch) fail(err error) error {
	if b.err == nil {
		b.err = err
	}
	return err
}

// add appends an entry whose value is value and more, unless err says what is wrong with it.
func (b *Batch) add(err error, kind base.Kind, key, value []byte, more ...byte) error {
	switch {
	case b.committed:
		return ErrBatchCommitted
	case err != nil:
		return b.fail(err)
	}
	if kind == base.KindRangeDelete {
		b.repr.Arena += memtable.TombstoneSize(len(key), len(value))
	} else {
		b.repr.Arena += memtable.EntrySize(len(key), len(value)+len(more))
	}
	if size := b.repr.Arena; size > MaxBatchSize {
		return b.fail(fmt.Errorf("%w: with %d writes the batch takes %d bytes, the limit is %d", ErrTooLarge,
			b.Len()+1, size, MaxBatchSize))
	}
	b.repr.Add(kind, key, value, more...)
	return b.err
}

// Commit writes the batch. From then on the batch takes no writes, and Commit returns ErrBatchCommitted, until Reset
// makes it usable again; Replay and Append of another batch still read it. After another error Commit may be tried
// again. After one that matches ErrReadOnly the batch may be in the log all the same, and be there when the store is
// opened again. After others, except ErrNotDurable, it was not written. A batch without writes is committed at once,
// whatever o says, and stays usable: use DB.Sync to make durable what others have written.
func (b *Batch) Commit(o *WriteOptions) error { return b.CommitContext(context.Background(), o) }

// CommitContext is Commit that ends its waits when ctx does. It may wait for a flush while memory is full, for
// compactions while level 0 or blob files are, or for other writers that wait. If ctx ends before the batch has its
// place in the log, the error matches ctx.Err(), and the batch is not written: not now and not later. Once it has its
// place, CommitContext waits only for the disk, whatever happens to ctx, and returns the outcome. So an error that
// matches ctx.Err() always means that nothing happened.
func (b *Batch) CommitContext(ctx context.Context, o *WriteOptions) error {
	switch {
	case b.committed:
		return ErrBatchCommitted
	case b.err != nil:
		return b.err
	case b.db == nil:
		return errNoStore
	}
	err := b.db.commit(ctx, b, nil, o)
	b.committed = b.Len() > 0 && (err == nil || errors.Is(err, ErrNotDurable))
	return err
}

// commit makes a batch durable to the requested level, and visible. If reads is not nil,
// it returns ErrConflict if some of them were written before the batch's turn.
func (d *DB) commit(ctx context.Context, b *Batch, reads commit.Reads, o *WriteOptions) error {
	if err := d.writable(); err != nil {
		return err
	}
	if b.Len() == 0 {
		return nil
	}
	began := d.counters.Latencies.Begin(counters.Commit)
	err := d.commits.Commit(ctx, &b.repr, reads, o.level())
	d.counters.Latencies.End(counters.Commit, began)
	return err
}

// commitStore returns what the commit pipeline needs of the store.
func (d *DB) commitStore() commit.Store {
	var large commit.Values
	if d.opts.SeparateAtCommit {
		large = d.values.Commits()
	}
	return commit.Store{
		Values: large, Visible: &d.visible, GroupBytes: d.opts.groupBytes(), OwnTable: d.opts.ownTable(),
		Logger: d.log, MakeRoom: d.makeRoom, Enable: d.enable,
		Filled: func() { // if the log cannot be replaced, writers get the error
			_ = d.rotateIf(func(*memTable) bool { return true })
		},
		Combine: func(key []byte, values [][]byte) ([]byte, error) {
			return d.operands.Entry(key, values)
		},
		SyncTook: d.counters.Latencies.SyncTook(),
		FlushedTo: func() uint64 {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.logNum
		},
		Fail: func(what string, isFatal bool, err error) error {
			if isFatal {
				return d.fail(brokenLog|fatal, what, err)
			}
			return d.fail(brokenLog, what, err)
		},
	}
}

package kv

import (
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/conflict"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/readset"
)

// Set stores value under key. It copies both. Like those of a Batch, errors of Set and
// its kin are returned by Commit as well.
func (t *Tx) Set(key, value []byte) error {
	return t.write(func(b *Batch) error { return b.Set(key, value) })
}

// Delete removes key. A key that is not there is no error, and was not read.
func (t *Tx) Delete(key []byte) error {
	return t.write(func(b *Batch) error { return b.Delete(key) })
}

// DeleteRange removes all keys of [lo, hi); a nil lo or hi has no bound.
func (t *Tx) DeleteRange(lo, hi []byte) error {
	return t.write(func(b *Batch) error { return b.DeleteRange(lo, hi) })
}

// DeletePrefix removes all keys that begin with prefix, which is not empty.
func (t *Tx) DeletePrefix(prefix []byte) error {
	return t.write(func(b *Batch) error { return b.DeletePrefix(prefix) })
}

// SetTTL stores value under key until ttl has passed, as DB.SetTTL does. The time
// counts from this call, not from Commit.
func (t *Tx) SetTTL(key, value []byte, ttl time.Duration) error {
	return t.write(func(b *Batch) error { return b.SetTTL(key, value, ttl) })
}

// SetUntil stores value under key until expiry, as DB.SetUntil does.
func (t *Tx) SetUntil(key, value []byte, expiry time.Time) error {
	return t.write(func(b *Batch) error { return b.SetUntil(key, value, expiry) })
}

// Merge combines operand with the value of key, as DB.Merge does. It reads nothing, so that transactions which merge
// into one key do not conflict. Later reads of the transaction see the operand. A Get combines it, with all others of
// the key, with what the store has. It reads that then, unless the transaction has set or deleted the key before.
func (t *Tx) Merge(key, operand []byte) error {
	return t.write(func(b *Batch) error { return b.Merge(key, operand) })
}

func (t *Tx) write(f func(*Batch) error) error {
	if err := t.usable(); err != nil {
		return err
	}
	if !t.writable {
		return ErrTxReadOnly
	}
	return f(&t.writes.batch)
}

// A txReads is what a transaction has read.
//
// It is validated twice. First by the committing goroutine, against all writes that are visible then; that may read
// files, and nothing waits for it. Then by the leader of the commit pipeline, against the few writes that came in
// between and the earlier batches of its group. Nothing of a transaction that is refused is in the log.
type txReads struct {
	readset.Tracker
	db    *DB
	since base.SeqNum // the write up to which it was found valid
}

// Validate returns ErrConflict if something of the set was written after r.since. The newest write that counts is last.
func (r *txReads) Validate(last base.SeqNum) error {
	if last == r.since {
		return nil
	}
	s := r.db.acquire(0)
	if s == nil {
		return r.db.unreadable()
	}
	defer s.release(0)
	return conflict.InState(r.since, s.mem, s.imms, s.version, &r.db.tables).Check(&r.Set)
}

// ValidateIn returns ErrConflict if something of the set is in m.
func (r *txReads) ValidateIn(m *memTable) error {
	return (&conflict.Writes{Since: r.since, Memtables: []*memTable{m}}).Check(&r.Set)
}

// ownSeq is the sequence number of a transaction's first write while it is the transaction's alone; the others count
// up. It is above all that a store gives out, so that merging puts a transaction's own writes before any others.
const ownSeq base.SeqNum = 1 << 55

// A txWrites is the writes of a transaction: a batch, and a memtable of the same once something of them is read. A
// transaction that only writes pays for no memtable.
type txWrites struct {
	batch   Batch
	index   *memTable
	room    int            // of the index, in bytes
	indexed batchrepr.Mark // what comes before it is in the index
}

// minIndex is the size of the first index in bytes.
const minIndex = 4 << 10

// memory returns the index, up to date; nil if nothing was written. Earlier ones
// stay as they are, for iterators that have them.
func (w *txWrites) memory() (*memTable, error) {
	b := &w.batch
	if w.indexed == b.repr.End() {
		return w.index, nil
	}
	if w.index == nil || w.room < b.repr.Arena {
		w.room = min(max(2*b.repr.Arena, minIndex), MaxBatchSize)
		w.index = newMemTable(int64(w.room+memtable.Slack), 0)
		w.indexed = batchrepr.Mark{}
	}
	err := w.index.ApplyEntries(b.repr.After(w.indexed, ownSeq+base.SeqNum(w.indexed.Count)))
	w.indexed = b.repr.End()
	return w.index, err
}

package kv

import (
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/memtable"
)

// ownSeq is the sequence number of a transaction's first write while it is the
// transaction's alone; the others count up. It is above all that a store gives
// out, so that merging puts a transaction's own writes before any others.
const ownSeq base.SeqNum = 1 << 55

// A txWrites is the writes of a transaction: a batch, and a memtable of the same
// once something of them is read. A transaction that only writes pays for no
// memtable.
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

// get returns the value that the transaction has written under key: found is
// false if it has deleted it, written if it did neither. The value aliases the
// index.
func (w *txWrites) get(key []byte) (value []byte, found, written bool, err error) {
	m, err := w.memory()
	if m == nil || err != nil {
		return nil, false, false, err
	}
	cover := m.Tombstones().Cover(key, base.MaxSeqNum)
	value, trailer, ok := m.Get(key, filterpolicy.Hash(key), base.MaxSeqNum)
	switch {
	case ok && trailer.SeqNum() > cover:
		return value, trailer.Kind() == base.KindSet, true, nil
	case cover > 0:
		return nil, false, true, nil
	}
	return nil, false, false, nil
}

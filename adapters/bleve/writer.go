package siftbleve

import (
	"errors"
	"fmt"

	store "github.com/blevesearch/upsidedown_store_api"

	"github.com/siftkv/siftkv/kv"
)

var (
	errForeignBatch = errors.New("bleve: siftkv: the batch is another store's")
	errClosedBatch  = errors.New("bleve: siftkv: the batch is closed")
)

// A writer makes batches and executes them. It has no state of its own.
type writer struct{ store *Store }

func (w writer) NewBatch() store.KVBatch { return &batch{store: w.store, b: w.store.db.NewBatch()} }

// NewBatchEx returns an empty batch, and memory for the caller to put keys and values together in. The batch copies
// what it is given.
func (w writer) NewBatchEx(o store.KVBatchOptions) ([]byte, store.KVBatch, error) {
	return make([]byte, o.TotalBytes), w.NewBatch(), nil
}

// ExecuteBatch writes a batch of the same store: all of it or, with an error, nothing. What was wrong with an
// operation of the batch, a key too long for instance, is returned here.
func (w writer) ExecuteBatch(kb store.KVBatch) error {
	b, ok := kb.(*batch)
	switch {
	case !ok:
		return fmt.Errorf("%w: it is a %T", errForeignBatch, kb)
	case b.store != w.store:
		return errForeignBatch
	case b.b == nil:
		return errClosedBatch
	}
	return b.b.Commit(w.store.writes)
}

func (w writer) Close() error { return nil }

// A batch collects operations, which take effect in their order. It belongs to one goroutine. After Close it takes
// none.
type batch struct {
	store   *Store
	b       *kv.Batch // nil: closed
	scratch []byte
}

// Errors of operations are kept by the kv.Batch, and returned by its Commit.

func (b *batch) Set(key, value []byte) {
	if b.b == nil {
		return
	}
	if len(value) > 0 && value[0] >= escape {
		b.scratch = appendValue(b.scratch[:0], value)
		value = b.scratch
	}
	_ = b.b.Set(key, value)
}

func (b *batch) Delete(key []byte) {
	if b.b != nil {
		_ = b.b.Delete(key)
	}
}

// Merge writes an operand for the value of a key.
func (b *batch) Merge(key, operand []byte) {
	if b.b != nil {
		b.scratch = appendOperand(b.scratch[:0], operand)
		_ = b.b.Merge(key, b.scratch)
	}
}

func (b *batch) Reset() {
	if b.b != nil {
		b.b.Reset()
	}
}

// Close gives the batch's memory back.
func (b *batch) Close() error {
	b.b, b.scratch = nil, nil
	return nil
}

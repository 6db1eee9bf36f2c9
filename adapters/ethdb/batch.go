package siftethdb

import (
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/ethdb"

	"github.com/siftkv/siftkv/kv"
)

// NewBatch returns an empty batch.
func (d *Database) NewBatch() ethdb.Batch { return batch{d.db.NewBatch()} }

// NewBatchWithSize is NewBatch: a batch grows as it needs to, and keeps its memory when it is reset.
func (d *Database) NewBatchWithSize(int) ethdb.Batch { return d.NewBatch() }

type batch struct{ of *kv.Batch }

func (b batch) Put(key, value []byte) error         { return b.of.Set(key, value) }
func (b batch) Delete(key []byte) error             { return b.of.Delete(key) }
func (b batch) DeleteRange(start, end []byte) error { return b.of.DeleteRange(start, end) }
func (b batch) Write() error                        { return b.of.Commit(kv.Async) }
func (b batch) Reset()                              { b.of.Reset() }
func (b batch) Close()                              {}

// ValueSize returns the bytes that the batch will take in the log, which are those of its keys and values
// and a few for each write; 0 for an empty one.
func (b batch) ValueSize() int { return b.of.Size() }

// Replay repeats the writes of the batch on w, in their order. If one of them is a DeleteRange, w must be
// an ethdb.KeyValueRangeDeleter. The slices that w is given are valid during the call.
func (b batch) Replay(w ethdb.KeyValueWriter) error { return b.of.Replay(replay{w}) }

// replay gives an ethdb.KeyValueWriter the form of a kv.Writer.
type replay struct{ to ethdb.KeyValueWriter }

func (r replay) Set(key, value []byte) error { return r.to.Put(key, value) }
func (r replay) Delete(key []byte) error     { return r.to.Delete(key) }

func (r replay) DeleteRange(lo, hi []byte) error {
	to, ok := r.to.(ethdb.KeyValueRangeDeleter)
	if !ok {
		return fmt.Errorf("ethdb: the batch has a DeleteRange, which a %T has not", r.to)
	}
	return to.DeleteRange(lo, hi)
}

// What follows is in no batch of this package: ethdb.Batch has no way to write it.

func (r replay) SetUntil(_, _ []byte, _ time.Time) error { return errors.ErrUnsupported }
func (r replay) Merge(_, _ []byte) error                 { return errors.ErrUnsupported }

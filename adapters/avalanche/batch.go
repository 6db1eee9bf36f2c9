package avalanche

import (
	"errors"
	"time"

	"github.com/ava-labs/avalanchego/database"

	"github.com/siftkv/siftkv/kv"
)

// NewBatch returns an empty batch.
func (d *Database) NewBatch() database.Batch { return batch{d.db, d.db.NewBatch(), d.durability} }

type batch struct {
	db         *kv.DB
	of         *kv.Batch
	durability *kv.WriteOptions
}

func (b batch) Put(key, value []byte) error { return b.of.Set(key, value) }
func (b batch) Delete(key []byte) error     { return b.of.Delete(key) }
func (b batch) Reset()                      { b.of.Reset() }
func (b batch) Inner() database.Batch       { return b }

// Write writes the batch, once more if it was written since Reset: database.Batch allows that, and kv.Batch does not.
func (b batch) Write() error {
	err := b.of.Commit(b.durability)
	if errors.Is(err, kv.ErrBatchCommitted) {
		again := b.db.NewBatch()
		err = errors.Join(again.Append(b.of), again.Commit(b.durability))
	}
	return translate(err)
}

// Size returns the bytes that the batch will take in the log, which are those of its keys and values and a
// few for each write; 0 for an empty one.
func (b batch) Size() int { return b.of.Size() }

// Replay repeats the writes of the batch on w, in their order. The slices that w is given are valid during the call.
func (b batch) Replay(w database.KeyValueWriterDeleter) error { return b.of.Replay(replay{w}) }

// replay gives a database.KeyValueWriterDeleter the form of a kv.Writer.
type replay struct {
	to database.KeyValueWriterDeleter
}

func (r replay) Set(key, value []byte) error { return r.to.Put(key, value) }
func (r replay) Delete(key []byte) error     { return r.to.Delete(key) }

// What follows is in no batch of this package: database.Batch has no way to write it.

func (r replay) DeleteRange(_, _ []byte) error           { return errors.ErrUnsupported }
func (r replay) SetUntil(_, _ []byte, _ time.Time) error { return errors.ErrUnsupported }
func (r replay) Merge(_, _ []byte) error                 { return errors.ErrUnsupported }

//go:build rocksdb

package rocksdb

/*
#include "calls.h"
*/
import "C"

import "fmt"

// A Batch collects keys that are written together. It is for one goroutine.
type Batch struct{ batch *C.rocksdb_writebatch_t }

// NewBatch returns an empty batch. The caller closes it.
func NewBatch() *Batch { return &Batch{C.rocksdb_writebatch_create()} }

// Put adds a key; it does not keep the slices.
func (b *Batch) Put(key, value []byte) {
	C.rocksdb_writebatch_put(b.batch, address(key), C.size_t(len(key)), address(value), C.size_t(len(value)))
}

// DeleteRange deletes the keys from start on that are less than end, by a batch of its own.
func (d *DB) DeleteRange(start, end []byte, sync bool) error {
	b := NewBatch()
	defer b.Close()
	C.rocksdb_writebatch_delete_range(b.batch, address(start), C.size_t(len(start)), address(end), C.size_t(len(end)))
	return d.Write(b, sync)
}

// Len returns the number of keys.
func (b *Batch) Len() int { return int(C.rocksdb_writebatch_count(b.batch)) }

// Close releases the batch.
func (b *Batch) Close() { C.rocksdb_writebatch_destroy(b.batch) }

// Write writes the batch and empties it.
func (d *DB) Write(b *Batch, sync bool) error {
	var failed *C.char
	C.rocksdb_write(d.db, d.option(sync), b.batch, &failed)
	if failed != nil {
		return fmt.Errorf("rocksdb: write: %w", take(failed))
	}
	C.rocksdb_writebatch_clear(b.batch)
	return nil
}

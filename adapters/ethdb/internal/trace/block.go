package main

import (
	"errors"
	"math/rand/v2"

	host "github.com/ethereum/go-ethereum/ethdb"

	"github.com/siftkv/siftkv/kv"
)

// A block is what is in memory while it is imported: what was read, and what is to be written. After an error it
// does nothing, and close returns the error.
type block struct {
	db    host.KeyValueStore
	noise *rand.ChaCha8
	read  map[string]bool
	batch host.Batch
	err   error
}

// newBlock begins a block; what it writes depends on the number.
func newBlock(db host.KeyValueStore, number uint64) *block {
	return &block{
		db: db, noise: rand.NewChaCha8([32]byte(hash('v', number, 0))),
		read: make(map[string]bool), batch: db.NewBatch(),
	}
}

func (b *block) has(key []byte) {
	if b.err == nil {
		_, b.err = b.db.Has(key)
	}
}

// get reads a key that may not be there, the first time.
func (b *block) get(key []byte) {
	if b.err != nil || b.read[string(key)] {
		return
	}
	b.read[string(key)] = true
	if _, err := b.db.Get(key); !errors.Is(err, kv.ErrNotFound) {
		b.err = err
	}
}

// put writes a value of so many bytes.
func (b *block) put(key []byte, size int) {
	value := make([]byte, size)
	_, _ = b.noise.Read(value) // it never fails
	b.write(b.batch.Put(key, value))
}

func (b *block) delete(key []byte) { b.write(b.batch.Delete(key)) }

// write writes the batch out when it is as large as go-ethereum's.
func (b *block) write(err error) {
	if b.err == nil {
		b.err = err
	}
	if b.err == nil && b.batch.ValueSize() > host.IdealBatchSize {
		b.err = b.batch.Write()
		b.batch.Reset()
	}
}

// close writes what is left.
func (b *block) close() error {
	if b.err == nil {
		b.err = b.batch.Write()
	}
	return b.err
}

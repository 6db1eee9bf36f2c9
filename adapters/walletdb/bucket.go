package siftwalletdb

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/btcsuite/btcwallet/walletdb"

	"github.com/siftkv/siftkv/kv"
)

// A bucket is one of a transaction's; there is one bucket for each name. Errors of reads that cannot be returned are
// kept by the transaction.
type bucket struct {
	tx       *tx
	prefix   []byte
	children map[string]*bucket // those that were asked for, and are there
	dead     bool               // it was deleted
}

var _ walletdb.ReadWriteBucket = (*bucket)(nil)

// lookUp returns what is under a key of the bucket. There is nothing in a bucket that is dead.
func (b *bucket) lookUp(key []byte) (value []byte, number uint64, nested, there bool, err error) {
	if b.dead || len(key) > maxKeySize {
		return nil, 0, false, false, nil
	}
	stored, err := b.tx.get(subKey(b.prefix, kindEntry, key))
	if err != nil || stored == nil {
		return nil, 0, false, false, err
	}
	value, number, nested, err = entryOf(stored)
	if err != nil {
		err = b.tx.fail(err)
	}
	return value, number, nested, err == nil, err
}

// Get returns the value of key; nil if there is none, or a bucket.
func (b *bucket) Get(key []byte) []byte {
	value, _, _, _, _ := b.lookUp(key)
	return value
}

// NestedReadBucket returns a bucket in this one, nil if there is none.
func (b *bucket) NestedReadBucket(name []byte) walletdb.ReadBucket {
	if child := b.child(name); child != nil {
		return child
	}
	return nil
}

// NestedReadWriteBucket is NestedReadBucket for those who write.
func (b *bucket) NestedReadWriteBucket(name []byte) walletdb.ReadWriteBucket {
	if child := b.child(name); child != nil {
		return child
	}
	return nil
}

func (b *bucket) child(name []byte) *bucket {
	if b.tx.done {
		return nil
	}
	if child := b.children[string(name)]; child != nil {
		return child
	}
	_, number, nested, _, err := b.lookUp(name)
	if err != nil || !nested {
		return nil
	}
	return b.addChild(name, number)
}

func (b *bucket) addChild(name []byte, number uint64) *bucket {
	child := &bucket{tx: b.tx, prefix: childPrefix(b.prefix, number)}
	if b.children == nil {
		b.children = map[string]*bucket{}
	}
	b.children[string(name)] = child
	return child
}

func (b *bucket) CreateBucket(name []byte) (walletdb.ReadWriteBucket, error) {
	child, made, err := b.create(name)
	switch {
	case err != nil:
		return nil, err
	case !made:
		return nil, walletdb.ErrBucketExists
	}
	return child, nil
}

func (b *bucket) CreateBucketIfNotExists(name []byte) (walletdb.ReadWriteBucket, error) {
	child, _, err := b.create(name)
	if err != nil {
		return nil, err
	}
	return child, nil
}

func (b *bucket) create(name []byte) (child *bucket, made bool, err error) {
	if err := b.checkWritable(); err != nil {
		return nil, false, err
	}
	switch {
	case len(name) == 0:
		return nil, false, walletdb.ErrBucketNameRequired
	case len(name) > maxKeySize:
		return nil, false, walletdb.ErrKeyTooLarge
	}
	if child := b.children[string(name)]; child != nil {
		return child, false, nil
	}
	switch _, number, nested, there, err := b.lookUp(name); {
	case err != nil:
		return nil, false, err
	case nested:
		return b.addChild(name, number), false, nil
	case there:
		return nil, false, walletdb.ErrIncompatibleValue
	case len(b.prefix) > maxPrefix:
		return nil, false, fmt.Errorf("%w: too many buckets are in one another", walletdb.ErrKeyTooLarge)
	}
	number, err := b.nextNumber()
	if err != nil {
		return nil, false, err
	}
	err = b.tx.write(func(inner *kv.Tx) error {
		return inner.Set(subKey(b.prefix, kindEntry, name), binary.AppendUvarint([]byte{isBucket}, number))
	})
	if err != nil {
		return nil, false, err
	}
	return b.addChild(name, number), true, nil
}

// nextNumber gives out the number of a new child.
func (b *bucket) nextNumber() (uint64, error) {
	key := subKey(b.prefix, kindLast, nil)
	stored, err := b.tx.get(key)
	if err != nil {
		return 0, err
	}
	last, n := binary.Uvarint(stored)
	if stored != nil && n != len(stored) {
		return 0, b.tx.fail(fmt.Errorf("%w: %x", errEntry, stored))
	}
	err = b.tx.write(func(inner *kv.Tx) error { return inner.Set(key, binary.AppendUvarint(nil, last+1)) })
	return last + 1, err
}

// DeleteNestedBucket removes a bucket in this one, with all that is in it: at the same cost, however much that is.
func (b *bucket) DeleteNestedBucket(name []byte) error {
	if err := b.checkWritable(); err != nil {
		return err
	}
	if len(name) == 0 {
		return walletdb.ErrIncompatibleValue
	}
	_, number, nested, there, err := b.lookUp(name)
	switch {
	case err != nil:
		return err
	case !there:
		return walletdb.ErrBucketNotFound
	case !nested:
		return walletdb.ErrIncompatibleValue
	}
	if child := b.children[string(name)]; child != nil {
		child.die()
		delete(b.children, string(name))
	}
	prefix := childPrefix(b.prefix, number)
	return b.tx.write(func(inner *kv.Tx) error {
		return errors.Join(inner.Delete(subKey(b.prefix, kindEntry, name)),
			inner.DeletePrefix(prefix))
	})
}

// die marks a bucket, and those in it, that somebody may still have.
func (b *bucket) die() {
	b.dead = true
	for _, child := range b.children {
		child.die()
	}
	b.children = nil
}

// checkWritable returns what is wrong with writing to the bucket.
func (b *bucket) checkWritable() error {
	if err := b.tx.checkWritable(); err != nil {
		return err
	}
	if b.dead {
		return walletdb.ErrBucketNotFound
	}
	return nil
}

func (b *bucket) Tx() walletdb.ReadWriteTx { return b.tx }

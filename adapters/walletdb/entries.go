package siftwalletdb

import (
	"encoding/binary"
	"fmt"

	"github.com/btcsuite/btcwallet/walletdb"

	"github.com/siftkv/siftkv/kv"
)

// Put stores a value under a key. It copies both.
func (b *bucket) Put(key, value []byte) error {
	if err := b.checkWritable(); err != nil {
		return err
	}
	switch {
	case len(key) == 0:
		return walletdb.ErrKeyRequired
	case len(key) > maxKeySize:
		return walletdb.ErrKeyTooLarge
	case len(value) >= kv.MaxValueSize:
		return walletdb.ErrValueTooLarge
	}
	if err := b.checkNoBucket(key); err != nil {
		return err
	}
	stored := append(append(make([]byte, 0, 1+len(value)), isValue), value...)
	return b.tx.write(func(inner *kv.Tx) error { return inner.Set(subKey(b.prefix, kindEntry, key), stored) })
}

// Delete removes a key. One that is not there is no error.
func (b *bucket) Delete(key []byte) error {
	if err := b.checkWritable(); err != nil {
		return err
	}
	if len(key) == 0 || len(key) > maxKeySize {
		return nil // it cannot be there
	}
	if err := b.checkNoBucket(key); err != nil {
		return err
	}
	return b.tx.write(func(inner *kv.Tx) error { return inner.Delete(subKey(b.prefix, kindEntry, key)) })
}

// checkNoBucket returns walletdb.ErrIncompatibleValue if a key is the name of a bucket.
func (b *bucket) checkNoBucket(key []byte) error {
	_, _, nested, _, err := b.lookUp(key)
	if err == nil && nested {
		return walletdb.ErrIncompatibleValue
	}
	return err
}

// ForEach calls f with every key and value in their order, and with the names of buckets, whose value is nil. It sees
// the bucket as it was when it was called: f may write.
func (b *bucket) ForEach(f func(key, value []byte) error) error {
	if b.tx.done {
		return walletdb.ErrTxClosed
	}
	if b.dead {
		return nil
	}
	it, err := b.iterator()
	if err != nil {
		return b.tx.fail(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		key, value, err := b.entryAt(it)
		if err != nil {
			return err
		}
		if err := f(key, value); err != nil {
			return err
		}
		if b.tx.done {
			return walletdb.ErrTxClosed
		}
	}
	if err := it.Error(); err != nil {
		return b.tx.fail(err)
	}
	return nil
}

// iterator returns an iterator over the bucket's entries as they are now.
func (b *bucket) iterator() (*kv.Iterator, error) {
	return b.tx.reads.NewIter(&kv.IterOptions{Prefix: subKey(b.prefix, kindEntry, nil)})
}

// keyIn returns the bucket's key that an iterator is on, until it moves.
func (b *bucket) keyIn(it *kv.Iterator) []byte { return it.Key()[len(b.prefix)+1:] }

// entryAt returns copies of what an iterator is on. The value of a bucket is nil; an empty one is not.
func (b *bucket) entryAt(it *kv.Iterator) (key, value []byte, err error) {
	stored, _, nested, err := entryOf(it.Value())
	if err != nil {
		return nil, nil, b.tx.fail(err)
	}
	key, value = b.tx.copies(b.keyIn(it), stored)
	if nested {
		value = nil
	}
	return key, value, nil
}

// Sequence returns the bucket's number, 0 at first.
func (b *bucket) Sequence() uint64 {
	n, _ := b.sequence()
	return n
}

func (b *bucket) sequence() (uint64, error) {
	if b.dead {
		return 0, nil
	}
	stored, err := b.tx.get(subKey(b.prefix, kindSequence, nil))
	switch {
	case err != nil || stored == nil:
		return 0, err
	case len(stored) != 8:
		return 0, b.tx.fail(fmt.Errorf("%w: %x", errEntry, stored))
	}
	return binary.BigEndian.Uint64(stored), nil
}

func (b *bucket) SetSequence(n uint64) error {
	if err := b.checkWritable(); err != nil {
		return err
	}
	return b.tx.write(func(inner *kv.Tx) error {
		return inner.Set(subKey(b.prefix, kindSequence, nil), binary.BigEndian.AppendUint64(nil, n))
	})
}

// NextSequence adds one to the bucket's number and returns it.
func (b *bucket) NextSequence() (uint64, error) {
	if err := b.checkWritable(); err != nil {
		return 0, err
	}
	n, err := b.sequence()
	if err != nil {
		return 0, err
	}
	return n + 1, b.SetSequence(n + 1)
}

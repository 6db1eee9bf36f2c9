package siftwalletdb

import (
	"bytes"

	"github.com/btcsuite/btcwallet/walletdb"

	"github.com/siftkv/siftkv/kv"
)

// A cursor stands on an entry of a bucket, or at a place between two: where it was put by a Seek that found nothing, or
// by Delete. It keeps the place and not only an iterator, which sees nothing that is written after it was made: after
// a write, and when the transaction has taken the iterator for another cursor, it looks for its place anew.
//
// At an end it stays on the entry that it was on, as bbolt's does: Next says that there is none, and Prev then goes
// to the one before.
type cursor struct {
	bucket *bucket
	placed bool
	place  []byte // key of the bucket
	on     bool   // there was an entry at the place when the cursor came there

	it     *kv.Iterator // nil: to be made
	writes uint64       // of the transaction when it was made
	exact  bool         // the iterator is on the place
}

var _ walletdb.ReadWriteCursor = (*cursor)(nil)

// ReadCursor returns a cursor that is nowhere yet.
func (b *bucket) ReadCursor() walletdb.ReadCursor { return &cursor{bucket: b} }

// ReadWriteCursor returns a cursor that is nowhere yet.
func (b *bucket) ReadWriteCursor() walletdb.ReadWriteCursor { return &cursor{bucket: b} }

// First goes to the first entry.
func (c *cursor) First() (key, value []byte) {
	return c.move(func(it *kv.Iterator) bool { return it.First() }, nil)
}

// Last goes to the last entry.
func (c *cursor) Last() (key, value []byte) {
	return c.move(func(it *kv.Iterator) bool { return it.Last() }, nil)
}

// Seek goes to the first entry at or after a key. If there is none, the cursor is behind all of them.
func (c *cursor) Seek(key []byte) (k, value []byte) {
	return c.move(func(it *kv.Iterator) bool { return it.SeekGE(c.bucket.keyOf(key)) }, func() {
		c.placed, c.place, c.on = true, append(c.place[:0], key...), false
	})
}

// Next goes to the next entry. If there is none, or the cursor is nowhere yet, it stays where it is.
func (c *cursor) Next() (key, value []byte) {
	if !c.placed {
		return nil, nil
	}
	return c.move(func(it *kv.Iterator) bool {
		if c.exact {
			return it.Next()
		}
		if !it.SeekGE(c.bucket.keyOf(c.place)) {
			return false
		}
		if c.on && bytes.Equal(it.Key(), c.bucket.keyOf(c.place)) {
			return it.Next()
		}
		return true
	}, nil)
}

// Prev goes to the entry before. If there is none, or the cursor is nowhere yet, it stays where it is.
func (c *cursor) Prev() (key, value []byte) {
	if !c.placed {
		return nil, nil
	}
	return c.move(func(it *kv.Iterator) bool {
		if c.exact {
			return it.Prev()
		}
		return it.SeekLT(c.bucket.keyOf(c.place))
	}, nil)
}

// Delete removes the entry that the cursor is on; on none it does nothing. The cursor stays between its neighbours.
func (c *cursor) Delete() error {
	switch err := c.bucket.checkWritable(); {
	case err != nil:
		return err
	case !c.placed || !c.on:
		return nil
	}
	// A write may have made something else of the entry.
	if err := c.bucket.Delete(c.place); err != nil {
		return err
	}
	c.on = false
	return nil
}

// keyOf returns the store's key of an entry.
func (b *bucket) keyOf(key []byte) []byte { return subKey(b.prefix, kindEntry, key) }

// move moves the iterator, which it makes if there is none that is up to date, and returns what it is on then. If it is
// on nothing, the cursor stays where it was, unless elsewhere says where it goes.
func (c *cursor) move(to func(it *kv.Iterator) bool, elsewhere func()) (key, value []byte) {
	t := c.bucket.tx
	if t.done || c.bucket.dead || t.err != nil {
		return nil, nil
	}
	if !c.refresh() {
		return nil, nil
	}
	if !to(c.it) {
		c.exact = false
		if err := c.it.Error(); err != nil {
			_ = t.fail(err)
		} else if elsewhere != nil {
			elsewhere()
		}
		return nil, nil
	}
	key, value, err := c.bucket.entryAt(c.it)
	if err != nil {
		return nil, nil
	}
	c.placed, c.place, c.on, c.exact = true, append(c.place[:0], key...), true, true
	return key, value
}

// refresh gives the cursor an iterator that sees all that the transaction has written.
func (c *cursor) refresh() bool {
	t := c.bucket.tx
	if c.it != nil && c.writes == t.writes {
		t.open.use(c)
		return true
	}
	t.open.drop(c)
	it, err := c.bucket.iterator()
	if err != nil {
		_ = t.fail(err)
		return false
	}
	c.it, c.writes, c.exact = it, t.writes, false
	t.open.use(c)
	return true
}

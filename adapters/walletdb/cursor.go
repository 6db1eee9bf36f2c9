package siftwalletdb

import (
	"bytes"

	"github.com/btcsuite/btcwallet/walletdb"

	"github.com/siftkv/siftkv/kv"
)

// A cursor stands on an entry of a bucket, or at a place between two: where it was put by a Seek that found nothing, or
// by Delete. While it is exact, its iterator is at the place. An iterator sees nothing that is written after it was
// made, and the transaction may close it to make one for another cursor. The cursor keeps the key of the place then,
// and a new iterator seeks it.
//
// At an end it stays on the entry that it was on, as bbolt's does: Next says that there is none, and Prev then goes
// to the one before.
type cursor struct {
	bucket *bucket
	placed bool
	place  []byte // key of the bucket, unless exact
	on     bool   // there was an entry at the place when the cursor came there

	it     *kv.Iterator // nil: to be made
	writes uint64       // of the transaction when it was made
	exact  bool         // the place is where the iterator is
}

var _ walletdb.ReadWriteCursor = (*cursor)(nil)

// ReadCursor returns a cursor that is nowhere yet.
func (b *bucket) ReadCursor() walletdb.ReadCursor { return &cursor{bucket: b} }

// ReadWriteCursor returns a cursor that is nowhere yet.
func (b *bucket) ReadWriteCursor() walletdb.ReadWriteCursor { return &cursor{bucket: b} }

func (c *cursor) First() (key, value []byte) {
	if !c.refresh() {
		return nil, nil
	}
	return c.arrive(c.it.First())
}

func (c *cursor) Last() (key, value []byte) {
	if !c.refresh() {
		return nil, nil
	}
	return c.arrive(c.it.Last())
}

// Seek goes to the first entry at or after a key. If there is none, the cursor is behind all of them.
func (c *cursor) Seek(key []byte) (k, value []byte) {
	if !c.refresh() {
		return nil, nil
	}
	k, value = c.arrive(c.it.SeekGE(c.bucket.keyOf(key)))
	if k == nil && c.bucket.tx.err == nil {
		c.placed, c.place, c.on = true, append(c.place[:0], key...), false
	}
	return k, value
}

// Next goes to the next entry. If there is none, or the cursor is nowhere yet, it stays where it is.
func (c *cursor) Next() (key, value []byte) {
	if !c.placed || !c.refresh() {
		return nil, nil
	}
	if c.exact {
		if !c.it.Next() {
			return c.stay((*kv.Iterator).Last)
		}
		return c.arrive(true)
	}
	place := c.bucket.keyOf(c.place)
	ok := c.it.SeekGE(place)
	if ok && c.on && bytes.Equal(c.it.Key(), place) {
		ok = c.it.Next()
	}
	return c.arrive(ok)
}

// Prev goes to the entry before. If there is none, or the cursor is nowhere yet, it stays where it is.
func (c *cursor) Prev() (key, value []byte) {
	if !c.placed || !c.refresh() {
		return nil, nil
	}
	if c.exact {
		if !c.it.Prev() {
			return c.stay((*kv.Iterator).First)
		}
		return c.arrive(true)
	}
	return c.arrive(c.it.SeekLT(c.bucket.keyOf(c.place)))
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
	c.keepPlace()
	if err := c.bucket.Delete(c.place); err != nil {
		return err
	}
	c.on = false
	return nil
}

// keyOf returns the store's key of an entry.
func (b *bucket) keyOf(key []byte) []byte { return subKey(b.prefix, kindEntry, key) }

// stay has the iterator go back to the entry at an end that it has passed.
func (c *cursor) stay(back func(*kv.Iterator) bool) (key, value []byte) {
	if c.it.Error() != nil || !back(c.it) {
		return c.arrive(false)
	}
	return nil, nil
}

// keepPlace keeps the place of an iterator that is about to be closed.
func (c *cursor) keepPlace() {
	if c.exact {
		c.place, c.exact = append(c.place[:0], c.bucket.keyIn(c.it)...), false
	}
}

// arrive returns what the iterator is on after a move, if it is on something. Else the cursor stays where it was.
func (c *cursor) arrive(ok bool) (key, value []byte) {
	c.exact = false
	if !ok {
		if err := c.it.Error(); err != nil {
			_ = c.bucket.tx.fail(err)
		}
		return nil, nil
	}
	key, value, err := c.bucket.entryAt(c.it)
	if err != nil {
		return nil, nil
	}
	c.placed, c.on, c.exact = true, true, true
	return key, value
}

// refresh gives the cursor an iterator that sees all that the transaction has written. It reports false if the cursor
// cannot move any more.
func (c *cursor) refresh() bool {
	t := c.bucket.tx
	switch {
	case t.done || c.bucket.dead || t.err != nil:
		return false
	case c.it != nil && c.writes == t.writes:
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

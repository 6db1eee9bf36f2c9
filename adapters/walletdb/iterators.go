package siftwalletdb

import "slices"

// maxIterators is how many cursors of a transaction have an iterator. Cursors are not closed, and some transactions
// make thousands.
const maxIterators = 16

// openIterators are the cursors of a transaction that have an iterator, those last that were used last.
type openIterators struct{ cursors []*cursor }

// use notes that a cursor uses its iterator, and takes that of another if there are too many.
func (o *openIterators) use(c *cursor) {
	n := len(o.cursors)
	if n > 0 && o.cursors[n-1] == c {
		return
	}
	if at := slices.Index(o.cursors, c); at >= 0 {
		o.cursors = slices.Delete(o.cursors, at, at+1)
	} else if n == maxIterators {
		o.drop(o.cursors[0])
	}
	o.cursors = append(o.cursors, c)
}

// drop closes the iterator of a cursor, if it has one.
func (o *openIterators) drop(c *cursor) {
	if c.it == nil {
		return
	}
	if at := slices.Index(o.cursors, c); at >= 0 {
		o.cursors = slices.Delete(o.cursors, at, at+1)
	}
	c.keepPlace()
	if err := c.it.Close(); err != nil {
		_ = c.bucket.tx.fail(err)
	}
	c.it = nil
}

func (o *openIterators) closeAll() {
	for len(o.cursors) > 0 {
		o.drop(o.cursors[0])
	}
}

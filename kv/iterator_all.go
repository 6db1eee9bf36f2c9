package kv

import "iter"

// All returns the entries of an iterator with the given options, ascending, for one loop after
// the other:
//
//	var err error
//	for key, value := range db.All(nil, &err) {
//		...
//	}
//	if err != nil {
//		...
//	}
//
// Each loop opens an iterator, and closes it when it ends, in whatever way: by break, return and
// panic, too. It sees the store as of its beginning. Keys and values are valid until the loop's next
// step, must not be changed, and are the iterator's: who keeps one clones it. With IterOptions.KeysOnly
// all values are nil. The options are read when the loop begins.
//
// A loop that begins sets *err to nil, and one that ends because something failed sets it to what
// Iterator.Error and NewIter would say: it ends then as at the last entry, so look at *err after it. To go on past a
// value that cannot be read, use an Iterator: see ValueError. If the
// store is closed meanwhile, that is ErrClosed, at the next step. What the body itself stores in *err
// stays. Loops within each other need an *err each, or the inner one's is to be looked at in the
// body. All panics if err is nil.
func (d *DB) All(o *IterOptions, err *error) iter.Seq2[[]byte, []byte] {
	return entries(d, o, err, false)
}

// Backward is All, descending.
func (d *DB) Backward(o *IterOptions, err *error) iter.Seq2[[]byte, []byte] {
	return entries(d, o, err, true)
}

// All is DB.All as of the snapshot. A loop that has begun may outlive it.
func (s *Snapshot) All(o *IterOptions, err *error) iter.Seq2[[]byte, []byte] {
	return entries(s, o, err, false)
}

// Backward is Snapshot.All, descending.
func (s *Snapshot) Backward(o *IterOptions, err *error) iter.Seq2[[]byte, []byte] {
	return entries(s, o, err, true)
}

// All is DB.All for what the transaction sees when the loop begins: its body may write, and
// does not come to that. The keys that the loop came to, and the gaps between them, count as read, not what
// is behind a break. If the transaction ends meanwhile, *err is ErrTxDone.
func (t *Tx) All(o *IterOptions, err *error) iter.Seq2[[]byte, []byte] {
	return entries(t, o, err, false)
}

// Backward is Tx.All, descending.
func (t *Tx) Backward(o *IterOptions, err *error) iter.Seq2[[]byte, []byte] {
	return entries(t, o, err, true)
}

// entries is All of a reader.
func entries(r Reader, o *IterOptions, failure *error, backward bool) iter.Seq2[[]byte, []byte] {
	if failure == nil {
		panic("siftkv: All and Backward need a place for an error: err is nil")
	}
	return func(yield func(key, value []byte) bool) {
		*failure = nil
		it, err := r.NewIter(o)
		if err != nil {
			*failure = err
			return
		}
		defer it.end(failure)
		if backward {
			for ok := it.Last(); ok && yield(it.Key(), it.Value()); ok = it.Prev() {
			}
			return
		}
		for ok := it.First(); ok && yield(it.Key(), it.Value()); ok = it.Next() {
		}
	}
}

// end closes the iterator of a loop, and says in *failure what ended it early.
func (i *Iterator) end(failure *error) {
	err := i.Error() // ErrClosed and ErrTxDone too, which Close leaves out
	if closed := i.Close(); err == nil {
		err = closed
	}
	if err != nil {
		*failure = err
	}
}

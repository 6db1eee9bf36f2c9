package kv

import "iter"

// All returns the entries of an iterator with the given options, ascending, for one loop after the other:
//
//	var err error
//	for key, value := range db.All(nil, &err) {
//		...
//	}
//	if err != nil {
//		...
//	}
//
// Each loop opens an iterator, and closes it when it ends, also by break, return or panic. It sees the store as of its
// beginning. Keys and values are valid until the loop's next step, must not be changed, and are the iterator's: clone
// those that you keep. With IterOptions.KeysOnly all values are nil. The options are read when the loop begins.
//
// A loop that begins sets *err to nil. If something fails, the loop ends as at the last entry, and sets *err to what
// Iterator.Error or NewIter would return: look at it after the loop. To go on past a value that cannot be read, use an
// Iterator: see ValueError. If the store is closed meanwhile, that is ErrClosed, at the next step. *err keeps what the
// body itself stores in it. Nested loops need an *err each, or the body must look at that of the inner one. All panics
// if err is nil.
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

// All is DB.All for what the transaction sees when the loop begins: its body may write, and the loop does not see
// that. The keys that the loop reached, and the gaps between them, count as read. Keys after a break do not. If the
// transaction ends meanwhile, *err is ErrTxDone.
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

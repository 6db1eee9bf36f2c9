package sstable

import (
	"bytes"
	"iter"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/sstable"
)

// An Iter walks the live keys of a file in order, both ways: those that Get finds. It starts on no entry: First, Last
// or a seek puts it on one. Every move reports whether it is on an entry; after false, Error tells an end from a
// failure. If the newest version of a key is a merge operand, the walk ends with ErrMergeOperand; if its value is in a
// blob file, with ErrValueSeparated. An Iter is not safe for concurrent use.
type Iter struct {
	r  *Reader
	in sstable.Iter

	key, value []byte
	newest     []byte // buffer of back
	backward   bool   // in is on the last entry before all versions of key, or on none
	valid      bool
	closed     bool
	err        error
}

// NewIter returns an iterator that is on no entry.
func (r *Reader) NewIter(o IterOptions) *Iter {
	i := &Iter{r: r, key: []byte{}, newest: []byte{}} // an empty key is not nil
	i.in.Init(r.in, sstable.IterOptions{Sequential: o.Sequential})
	return i
}

// Valid reports whether the iterator is on an entry.
func (i *Iter) Valid() bool { return i.valid }

// Key returns the key, valid until the next move; nil if the iterator is on no entry. The caller must not change it.
func (i *Iter) Key() []byte {
	if !i.valid {
		return nil
	}
	return i.key
}

// Value returns the value, valid until the next move; nil if the iterator is on no entry.
// The caller must not change it.
func (i *Iter) Value() []byte {
	if !i.valid {
		return nil
	}
	return i.value
}

// Error returns what ended the iteration early. Nil at an end.
func (i *Iter) Error() error { return i.err }

// Close ends the iteration and returns Error. Later moves fail. A second Close does nothing.
func (i *Iter) Close() error {
	if i.closed {
		return nil
	}
	err := i.err
	*i = Iter{closed: true}
	return err
}

// usable clears the last error, and reports whether iterator and reader are open.
func (i *Iter) usable() bool {
	i.valid, i.err = false, nil
	if i.closed || i.r.in.Closed() {
		i.err = ErrClosed
	}
	return i.err == nil
}

// First moves to the first entry.
func (i *Iter) First() bool { return i.usable() && i.forward(i.in.First(), false) }

// Last moves to the last entry.
func (i *Iter) Last() bool { return i.usable() && i.back(i.in.Last()) }

// SeekGE moves to the first entry at or after key.
func (i *Iter) SeekGE(key []byte) bool {
	return i.usable() && i.forward(i.in.SeekGE(base.SearchKey(key, base.MaxSeqNum)), false)
}

// SeekLT moves to the last entry before key.
func (i *Iter) SeekLT(key []byte) bool {
	return i.usable() && i.back(i.in.SeekLT(base.SearchKey(key, base.MaxSeqNum)))
}

// Next moves to the next entry. It does nothing if the iterator is on none.
func (i *Iter) Next() bool {
	switch {
	case !i.valid || !i.usable():
		return false
	case i.backward:
		return i.forward(i.in.SeekGE(base.SearchKey(i.key, base.MaxSeqNum)), true)
	}
	return i.forward(i.in.Next(), true)
}

// Prev moves to the entry before. It does nothing if the iterator is on none.
func (i *Iter) Prev() bool {
	switch {
	case !i.valid || !i.usable():
		return false
	case i.backward:
		return i.back(i.in.Valid())
	}
	return i.back(i.in.Prev())
}

// forward goes on from in's entry (on: there is one) to the newest version of a live key. If
// skip is set, that is not i.key.
func (i *Iter) forward(on, skip bool) bool {
	i.backward = false
	for ; on; on = i.in.Next() {
		k := i.in.Key()
		if skip && bytes.Equal(k.User, i.key) {
			continue
		}
		i.key, skip = append(i.key[:0], k.User...), true
		if i.show(k.Trailer, i.in.Value()) {
			return i.valid
		}
	}
	i.err = i.in.Error()
	return false
}

// back goes back from in's entry past all versions of a live key, of which the newest comes last.
func (i *Iter) back(on bool) bool {
	i.backward = true
	for on {
		i.key = append(i.key[:0], i.in.Key().User...)
		var newest base.Trailer
		for ; on && bytes.Equal(i.in.Key().User, i.key); on = i.in.Prev() {
			newest, i.newest = i.in.Key().Trailer, append(i.newest[:0], i.in.Value()...)
		}
		if i.in.Error() == nil && i.show(newest, i.newest) {
			return i.valid
		}
	}
	i.err = i.in.Error()
	return false
}

// show puts the iterator on i.key if its newest version is live, and reports whether the move ends here.
func (i *Iter) show(newest base.Trailer, stored []byte) bool {
	i.value, i.valid, i.err = i.r.live(i.key, newest, stored)
	return i.valid || i.err != nil
}

// An Entry is a live key with its value.
type Entry struct{ Key, Value []byte }

// All returns an iterator over the file's live keys in ascending order. Slices are valid for one
// step. An error ends the sequence and comes with a zero Entry; it matches ErrMergeOperand at a key
// with a merge operand as its newest version.
func (r *Reader) All() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		it := r.NewIter(IterOptions{Sequential: true})
		for ok := it.First(); ok; ok = it.Next() {
			if !yield(Entry{it.Key(), it.Value()}, nil) {
				return
			}
		}
		if err := it.Close(); err != nil {
			yield(Entry{}, err)
		}
	}
}

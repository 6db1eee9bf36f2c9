package siftbleve

import "github.com/siftkv/siftkv/kv"

// An iterator walks a snapshot forward. The interface has no place for errors but Close: after one the iterator is
// on no entry, like one at its end. It belongs to one goroutine.
type iterator struct {
	it    *kv.Iterator // nil: it could not be made
	rows  rows
	err   error
	value []byte // of this entry, once it was asked for
	known bool   // value is it
}

// Seek moves to the first entry at or after key, within the bounds.
func (i *iterator) Seek(key []byte) {
	i.known = false
	if i.err == nil {
		i.it.SeekGE(key)
	}
}

func (i *iterator) Next() {
	i.known = false
	if i.err == nil {
		i.it.Next()
	}
}

func (i *iterator) Valid() bool { return i.err == nil && i.it.Valid() }

// Key returns the entry's key, nil at the end.
func (i *iterator) Key() []byte {
	if !i.Valid() {
		return nil
	}
	return i.it.Key()
}

// Value returns the entry's value, nil at the end, and after an error.
func (i *iterator) Value() []byte {
	if !i.Valid() {
		return nil
	}
	if !i.known {
		i.value, i.err = i.rows.value(i.it.Key(), i.it.Value())
		i.known = i.err == nil
	}
	if i.err != nil {
		return nil
	}
	return i.value
}

func (i *iterator) Current() (key, value []byte, valid bool) {
	value = i.Value()
	if !i.Valid() { // the value may have failed
		return nil, nil, false
	}
	return i.it.Key(), value, true
}

// Close returns what ended the iteration early: that the store was closed, too, which kv.Iterator.Close does not say.
func (i *iterator) Close() error {
	if i.it == nil {
		return i.err
	}
	if i.err == nil {
		i.err = i.it.Error()
	}
	err := i.it.Close()
	if i.err != nil {
		return i.err
	}
	return err
}

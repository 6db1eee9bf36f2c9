package avalanche

import (
	"slices"

	"github.com/ava-labs/avalanchego/database"

	"github.com/siftkv/siftkv/kv"
)

// NewIterator returns an iterator over all keys, as they are now.
func (d *Database) NewIterator() database.Iterator { return d.iterate(&kv.IterOptions{}) }

// NewIteratorWithStart returns an iterator from a key on.
func (d *Database) NewIteratorWithStart(start []byte) database.Iterator {
	return d.iterate(&kv.IterOptions{LowerBound: start})
}

// NewIteratorWithPrefix returns an iterator over the keys that begin with the prefix.
func (d *Database) NewIteratorWithPrefix(prefix []byte) database.Iterator {
	return d.iterate(&kv.IterOptions{Prefix: prefix})
}

// NewIteratorWithStartAndPrefix returns an iterator over the keys that begin with the prefix, from a key on.
func (d *Database) NewIteratorWithStartAndPrefix(start, prefix []byte) database.Iterator {
	return d.iterate(&kv.IterOptions{LowerBound: start, Prefix: prefix})
}

func (d *Database) iterate(o *kv.IterOptions) database.Iterator {
	it, err := d.db.NewIter(o)
	if err != nil {
		return &database.IteratorError{Err: translate(err)}
	}
	return &iterator{of: it}
}

// iterator keeps copies of the entry that it is on, as avalanchego wants to have it when the store has
// been closed.
type iterator struct {
	of         *kv.Iterator // safe to use when it, or the store, is closed
	key, value []byte
	begun      bool
}

func (i *iterator) Next() bool {
	i.key, i.value = nil, nil
	var ok bool
	if i.begun {
		ok = i.of.Next()
	} else {
		i.begun, ok = true, i.of.First()
	}
	if ok {
		i.key, i.value = slices.Clone(i.of.Key()), slices.Clone(i.of.Value())
	}
	return ok
}

func (i *iterator) Error() error  { return translate(i.of.Error()) }
func (i *iterator) Key() []byte   { return i.key }
func (i *iterator) Value() []byte { return i.value }
func (i *iterator) Release()      { _ = i.of.Close() } // Error keeps what it returns

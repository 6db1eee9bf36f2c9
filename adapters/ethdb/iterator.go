package siftethdb

import (
	"slices"

	"github.com/ethereum/go-ethereum/ethdb"

	"github.com/siftkv/siftkv/kv"
)

// NewIterator returns an iterator over the keys that begin with the prefix, from the first on that is not
// below prefix and start together. It sees the store as it is now.
func (d *Database) NewIterator(prefix, start []byte) ethdb.Iterator {
	it, err := d.db.NewIter(&kv.IterOptions{Prefix: prefix, LowerBound: slices.Concat(prefix, start)})
	if err != nil {
		return failed{err}
	}
	return &iterator{of: it}
}

type iterator struct {
	of    *kv.Iterator // safe to use when it, or the store, is closed
	begun bool
}

func (i *iterator) Next() bool {
	if i.begun {
		return i.of.Next()
	}
	i.begun = true
	return i.of.First()
}

func (i *iterator) Error() error  { return i.of.Error() }
func (i *iterator) Key() []byte   { return i.of.Key() }
func (i *iterator) Value() []byte { return i.of.Value() }
func (i *iterator) Release()      { _ = i.of.Close() } // Error keeps what it returns

// failed is an iterator that could not be made.
type failed struct{ err error }

func (failed) Next() bool     { return false }
func (f failed) Error() error { return f.err }
func (failed) Key() []byte    { return nil }
func (failed) Value() []byte  { return nil }
func (failed) Release()       {}

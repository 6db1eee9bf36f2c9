package siftbleve

import (
	"bytes"
	"context"

	"github.com/siftkv/siftkv/kv"
)

const (
	// dictionary begins the keys of upsidedown's rows that count the documents of a term.
	dictionary = 'd'
	// compactChunk is how many rows a transaction of Compact looks at: bleve goes on writing, and a count
	// that it changes meanwhile has the transaction run again.
	compactChunk = 4096
)

// zero is the value of a row whose term is in no document any more.
var zero = []byte{0}

// Compact removes the rows of terms that no document has any more, which upsidedown leaves behind, and then
// compacts the whole store. The index may be in use meanwhile.
func (s *Store) Compact() error {
	from := []byte{dictionary}
	for from != nil {
		var next []byte
		err := s.db.Update(func(tx *kv.Tx) (err error) {
			next, err = s.dropUnused(tx, from)
			return err
		})
		if err != nil {
			return err
		}
		from = next
	}
	return s.db.Compact(context.Background(), nil, nil)
}

// dropUnused looks at the rows of the dictionary from a key on, and returns where it left off; nil at the end.
func (s *Store) dropUnused(tx *kv.Tx, from []byte) (next []byte, err error) {
	it, err := tx.NewIter(&kv.IterOptions{LowerBound: from, UpperBound: []byte{dictionary + 1}})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if n++; n > compactChunk {
			return bytes.Clone(it.Key()), nil
		}
		value, err := s.rows.value(it.Key(), it.Value())
		if err != nil {
			return nil, err
		}
		if bytes.Equal(value, zero) {
			if err := tx.Delete(it.Key()); err != nil {
				return nil, err
			}
		}
	}
	return nil, it.Error()
}

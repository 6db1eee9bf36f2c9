package frombbolt

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
)

// A walk goes over a tree of buckets in the order of their prefixes.
type walk struct {
	s     *store
	visit source.Visitor

	outer  [][]byte // the buckets that the walk is in
	prefix []byte
	path   [][]byte // the bucket to begin with, from here down
	from   []byte   // of its keys, the first; nil: all
}

// within walks the buckets that a cursor comes to.
func (w *walk) within(c *bbolt.Cursor, bucket func([]byte) *bbolt.Bucket) error {
	var start []byte
	if len(w.path) > 0 {
		start = w.path[0]
	}
	for name, value := c.Seek(start); name != nil; name, value = c.Next() {
		if value != nil {
			continue
		}
		if len(w.path) > 0 && !bytes.Equal(name, start) {
			w.path, w.from = nil, nil
		}
		b := bucket(name)
		if b == nil {
			return fmt.Errorf("%w: bucket %q is in its list and is not found", source.ErrDamaged, name)
		}
		if err := w.bucket(name, b); err != nil {
			return err
		}
		w.path, w.from, start = nil, nil, nil
	}
	return nil
}

// bucket walks a bucket: its keys, and then the buckets in it.
func (w *walk) bucket(name []byte, b *bbolt.Bucket) error {
	if b.Sequence() != 0 {
		w.s.sequences++
	}
	if len(w.path) > 0 {
		w.path = w.path[1:]
	}
	w.outer = append(w.outer, name)
	look := true // for buckets within
	if len(w.path) == 0 {
		w.prefix = Prefix(w.outer...)
		buckets, err := w.keys(b)
		if err != nil {
			return err
		}
		look = buckets > 0 || w.from != nil // before from there may be more
		w.from = nil
	}
	if look {
		if err := w.within(b.Cursor(), b.Bucket); err != nil {
			return err
		}
	}
	w.outer = w.outer[:len(w.outer)-1]
	return nil
}

// keys visits a bucket's own keys, and counts the buckets that it comes upon.
func (w *walk) keys(b *bbolt.Bucket) (buckets int, err error) {
	c := b.Cursor()
	var e source.Entry
	key := append([]byte{}, w.prefix...)
	for k, v := c.Seek(w.from); k != nil; k, v = c.Next() {
		if v == nil {
			buckets++
			continue
		}
		const header = 16 // of an element in a page
		w.s.read += int64(header + len(k) + len(v))
		key = append(key[:len(w.prefix)], k...)
		e.Key, e.Value = key, v
		if err := w.visit(&e); err != nil {
			return buckets, err
		}
	}
	return buckets, nil
}

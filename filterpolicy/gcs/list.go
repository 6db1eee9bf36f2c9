package gcs

import "iter"

// Buckets returns the geometry of a filter: the values of a hash that All yields are below
// buckets times width. Both are 0 for the filter of no keys.
func (f *Filter) Buckets() (buckets, width uint64) { return f.buckets, f.width }

// All yields the values of the filter in ascending order, each once.
func (f *Filter) All() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		c := cursor{of: f}
		for v, ok := c.next(); ok && yield(v); v, ok = c.next() {
		}
	}
}

// A cursor goes through the values of a filter.
type cursor struct {
	of      *Filter
	bucket  uint64 // the next one
	reader  reader // of the bucket before it
	least   uint64 // the least value that can follow there
	damaged bool   // what was read is not what a builder writes
}

// next returns the next value, false after the last one and from the first that is
// damaged.
func (c *cursor) next() (value uint64, ok bool) {
	for c.reader.pos >= c.reader.end {
		if c.damaged || c.bucket == c.of.buckets {
			return 0, false
		}
		c.reader, ok = c.of.reader(c.bucket)
		c.damaged = !ok
		if c.damaged {
			return 0, false
		}
		c.least = 0
		c.bucket++
	}
	c.least += c.reader.next(c.of.code) + 1
	if c.reader.pos > c.reader.end || c.least == 0 || c.least > c.of.width {
		c.damaged, c.reader = true, reader{}
		return 0, false
	}
	return (c.bucket-1)*c.of.width + c.least - 1, true
}

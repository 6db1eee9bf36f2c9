package gcs

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"math/bits"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

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

type cursor struct {
	of      *Filter
	bucket  uint64 // the next one
	reader  reader // of the bucket before it
	least   uint64 // the least value that can follow there
	damaged bool   // what was read is not what a builder writes
}

// next returns the next value, false after the last one and from the first that is damaged.
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

// ErrUnlike is matched by the error of Merge for filters over different ranges.
var ErrUnlike = errors.New("gcs: filters of different ranges cannot be merged; " +
	"make both for the same number of keys, by NewBuilderFor")

// Merge appends to dst the filter that says maybe to a key if a or b does, and to no other, and returns the result. The
// filters must be over the same range of values; a filter of no keys goes with any. Merges of the same parts in any
// order give the same bytes, and those of a builder for the same number of keys that was given all keys, if these are
// no more. It takes one pass over each filter, and the memory of the codes and 8 bytes per bucket besides the result.
//
// More keys than the range is for may be merged; the rate is the sum of the parts'.
//
// An error matches ErrUnlike or, for filters that no builder wrote, the sentinel of
// corruption; dst is then returned as it was.
func Merge(dst []byte, a, b *Filter) ([]byte, error) {
	if a.buckets == 0 {
		a, b = b, a
	}
	keys, carry := bits.Add64(a.keys, b.keys, 0)
	if carry != 0 {
		keys = math.MaxUint64 // no number that a builder wrote
	}
	d := frame.Description{Keys: keys, Units: a.buckets}
	g := geometry{a.buckets, a.width, a.code.divisor}
	switch {
	case a.buckets == 0:
		return d.Seal(dst, len(dst), frame.GCS), nil
	case b.buckets != 0 && g != geometry{b.buckets, b.width, b.code.divisor}:
		return dst, fmt.Errorf("%w: %d buckets of %d values and %d of %d", ErrUnlike, a.buckets, a.width, b.buckets,
			b.width)
	}
	if high, _ := bits.Mul64(a.buckets, a.width); high != 0 {
		return dst, frame.Corruptf("%d buckets of %d values are more than a hash can have", a.buckets, a.width)
	}
	x, y := cursor{of: a}, cursor{of: b}
	data, offset := appendCells(dst, g, hash64.Union(x.next, y.next))
	if x.damaged || y.damaged {
		return dst, frame.Corruptf("the codes of a bucket are not those of values below %d", a.width)
	}
	d.Params = offset
	return d.Seal(data, len(dst), frame.GCS), nil
}

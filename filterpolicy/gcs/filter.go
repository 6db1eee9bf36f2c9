package gcs

import (
	"encoding/binary"
	"math"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

// A Filter is a read-only view of a filter's bytes. Any number of goroutines may probe it.
type Filter struct {
	index   index
	codes   []byte // with the padding
	code    code
	buckets uint64 // 0 in the filter of no keys
	width   uint64
	keys    uint64 // added, by the footer
}

// Decode checks data, every byte of it, and returns a view of it. The caller must not change data
// while the filter is in use. An error matches the sentinel of corruption.
func Decode(data []byte) (*Filter, error) { return frame.Decode(data, frame.GCS, (*Filter).whole) }

// Probe is a single probe of encoded bytes, for callers that keep no Filter and
// whose own checksum covers data. Bytes that are no filter answer true.
func Probe(data []byte, h uint64) bool {
	var f Filter
	return !f.view(frame.Peek(data, frame.GCS)) || f.MayContainHash(h)
}

// view makes f a filter that cannot read out of bounds, or says false.
func (f *Filter) view(cells []byte, footer *frame.Footer) bool {
	n := uint64(len(cells))
	f.buckets, f.index.offset, f.keys = footer.Units(), uint64(footer.Params()), footer.Keys()
	if f.index.offset > maxOffset || footer.Seed() != 0 {
		return false
	}
	if f.buckets == 0 {
		return n == 0 && f.index.offset == 0
	}
	if n < trailerLen || f.buckets > n*groupLen {
		return false
	}
	bases, deviations := sizes(f.buckets+1, f.index.offset)
	if bases+deviations > n-trailerLen {
		return false
	}
	numbers := cells[n-trailerLen+wordLen:]
	f.width = binary.LittleEndian.Uint64(numbers)
	divisor := binary.LittleEndian.Uint64(numbers[wordLen:])
	f.index.stride = binary.LittleEndian.Uint64(numbers[2*wordLen:])
	if f.width == 0 || divisor == 0 || divisor > math.MaxUint32 {
		return false
	}
	f.code = codeOf(divisor)
	f.index.bases, f.index.deviations = cells[:bases], cells[bases:bases+deviations]
	f.codes = cells[bases+deviations : n-trailerLen+wordLen]
	return true
}

// whole is view, and says false as well if the index is not that of the codes.
func (f *Filter) whole(cells []byte, footer *frame.Footer) bool {
	if !f.view(cells, footer) {
		return false
	}
	if f.buckets == 0 {
		return true
	}
	last := uint64(0)
	for i := range f.buckets + 1 {
		p := f.index.at(i)
		if p < last || i == 0 && p != 0 {
			return false
		}
		last = p
	}
	return last <= math.MaxUint64-7 && (last+7)/8 == uint64(len(f.codes)-wordLen)
}

// MayContainHash reports whether a key with this hash may have been added; false
// is certain. It allocates nothing and decodes half a bucket.
func (f *Filter) MayContainHash(h uint64) bool {
	if f.buckets == 0 {
		return false
	}
	bucket, value := locate(hash64.Seeded(h, 0), f.buckets, f.width)
	r, ok := f.reader(bucket)
	if !ok {
		return true // not what a builder writes
	}
	return r.find(f.code, value)
}

// reader returns a reader of a bucket, false if it would leave the codes.
func (f *Filter) reader(bucket uint64) (r reader, ok bool) {
	r = reader{f.codes, f.index.at(bucket), f.index.at(bucket + 1)}
	return r, r.pos <= r.end && r.end <= uint64(len(f.codes)-wordLen)*8
}

// Value returns the value under which the filter knows a hash; there are no values in the filter of no keys.
func (f *Filter) Value(h uint64) uint64 {
	bucket, value := locate(hash64.Seeded(h, 0), f.buckets, f.width)
	return bucket*f.width + value
}

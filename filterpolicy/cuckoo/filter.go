package cuckoo

import (
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
)

// A Filter is a read-only view of a filter's bytes. Any number of goroutines may probe it.
type Filter struct {
	table   table
	sorting *sorting // of the cells; nil if they are a plain table's
}

// Decode checks data, every byte of it, and returns a view of it. The caller must not change data
// while the filter is in use. An error matches the sentinel of corruption.
func Decode(data []byte) (*Filter, error) { return frame.Decode(data, frame.Cuckoo, (*Filter).view) }

// Probe is a single probe of encoded bytes, for callers that keep no Filter and
// whose own checksum covers data. Bytes that are no filter answer true.
func Probe(data []byte, h uint64) bool {
	var f Filter
	return !f.view(frame.Peek(data, frame.Cuckoo)) || f.MayContainHash(h)
}

// noSlots stands in for the cells of an empty filter: two buckets without a fingerprint.
var noSlots [2*8*maxBits/8 + padding]byte

// view makes f a filter that cannot read out of bounds, or says false.
func (f *Filter) view(cells []byte, footer *frame.Footer) bool {
	params, buckets := footer.Params(), footer.Units()
	if params>>8 == semisortSlots|semisortParam<<8 {
		if f.sorting = sortingOf(params & 0xff); f.sorting == nil {
			return false
		}
		params &= 0xffff
	}
	s := shapeOf(params&0xff, params>>8)
	if s == nil {
		return false
	}
	f.table.shape, f.table.cells, f.table.buckets, f.table.seed = s, cells, buckets, footer.Seed()
	if len(cells) == 0 && buckets == 0 {
		f.table.cells, f.table.buckets = noSlots[:], 2
		return true
	}
	// A bucket has at least a byte, so that size does not wrap.
	return buckets != 0 && buckets%2 == 0 && buckets <= uint64(len(cells)) && f.size() == uint64(len(cells))
}

// size returns the bytes that the filter's buckets take.
func (f *Filter) size() uint64 {
	if f.sorting != nil {
		return f.sorting.size(f.table.buckets)
	}
	return f.table.size(f.table.buckets)
}

// MayContainHash reports whether a key with this hash may have been added; false is
// certain. It allocates nothing and reads two buckets, all slots of a word at once.
func (f *Filter) MayContainHash(h uint64) bool {
	fingerprint, i := f.table.locate(h)
	j := f.table.other(fingerprint, i)
	if f.sorting != nil {
		return f.sorting.has(f.table.cells, i, fingerprint) || f.sorting.has(f.table.cells, j, fingerprint)
	}
	if f.table.words != 1 {
		return f.table.has(i, fingerprint) || f.table.has(j, fingerprint)
	}
	pattern := fingerprint * f.table.ones
	return f.table.zeros(f.table.word(i)^pattern)|f.table.zeros(f.table.word(j)^pattern) != 0
}

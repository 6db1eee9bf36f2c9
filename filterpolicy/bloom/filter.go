package bloom

import (
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

// A Filter is a read-only view of a filter's bytes. Any number of goroutines may
// probe it.
type Filter struct {
	cells  []byte // at least one
	probes int
}

// noBits stands in for the cells of an empty filter: one probe finds a clear bit.
var noBits = []byte{0}

// Decode checks data, every byte of it, and returns a view of it. The caller must
// not change data while the filter is in use. An error matches the sentinel of
// corruption.
func Decode(data []byte) (*Filter, error) { return frame.Decode(data, frame.Bloom, (*Filter).view) }

// Probe is a single probe of encoded bytes, for callers that keep no Filter and
// whose own checksum covers data. Bytes that are no filter answer true.
func Probe(data []byte, h uint64) bool {
	var f Filter
	return !f.view(frame.Peek(data, frame.Bloom)) || f.MayContainHash(h)
}

// view makes f a filter that cannot read out of bounds, or says false.
func (f *Filter) view(cells []byte, footer *frame.Footer) bool {
	f.cells, f.probes = cells, int(footer.Params())
	if footer.Units() != uint64(len(cells))*cellBits || footer.Seed() != 0 ||
		f.probes < 1 || f.probes > maxProbes {
		return false
	}
	if len(cells) == 0 {
		f.cells = noBits
	}
	return true
}

// MayContainHash reports whether a key with this hash may have been added; false is
// certain. It allocates nothing and stops at the first clear bit.
func (f *Filter) MayContainHash(h uint64) bool {
	n := uint64(len(f.cells)) * cellBits
	p, step := start(h)
	for i := range f.probes {
		at := hash64.Reduce(p, n)
		if f.cells[at/8]>>(at%8)&1 == 0 {
			return false
		}
		p, step = next(p, step, i)
	}
	return true
}

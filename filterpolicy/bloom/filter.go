package bloom

import (
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/mix"
)

// A Filter is a read-only view of a filter's bytes. Any number of goroutines may
// probe it.
type Filter struct {
	cells  []byte
	bits   uint64 // 8*len(cells)
	probes int
}

// noBits stands in for the cells of an empty filter: one probe finds a clear bit.
var noBits = []byte{0}

// Decode checks data, every byte of it, and returns a view of it. The caller must
// not change data while the filter is in use. An error matches the sentinel of
// corruption.
func Decode(data []byte) (*Filter, error) {
	cells, footer, err := frame.Open(data, frame.Bloom)
	if err != nil {
		return nil, err
	}
	f, ok := view(cells, &footer)
	if !ok {
		return nil, frame.Corruptf("%d bytes do not hold %d bits with probes %v", len(cells), footer.Units, footer.Params)
	}
	return &f, nil
}

// Probe is a single probe of encoded bytes, for callers that keep no Filter and
// whose own checksum covers data. Bytes that are no filter answer true.
func Probe(data []byte, h uint64) bool {
	cells, footer, ok := frame.Peek(data, frame.Bloom)
	if !ok {
		return true
	}
	f, ok := view(cells, &footer)
	return !ok || f.MayContainHash(h)
}

// view makes a Filter that cannot read out of bounds, or says false.
func view(cells []byte, footer *frame.Footer) (f Filter, ok bool) {
	probes := int(footer.Params[0])
	if footer.Units != uint64(len(cells))*cellBits || footer.Seed != 0 ||
		probes < 1 || probes > maxProbes || footer.Params != [4]byte{byte(probes)} {
		return Filter{}, false
	}
	if len(cells) == 0 {
		cells = noBits
	}
	return Filter{cells, uint64(len(cells)) * cellBits, probes}, true
}

// MayContainHash reports whether a key with this hash may have been added; false
// is certain. It allocates nothing.
func (f *Filter) MayContainHash(h uint64) bool {
	p, step := start(h)
	for i := range f.probes {
		at := mix.Reduce(p, f.bits)
		if f.cells[at/8]>>(at%8)&1 == 0 {
			return false
		}
		p, step = next(p, step, i)
	}
	return true
}

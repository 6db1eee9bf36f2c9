package ribbon

import (
	"encoding/binary"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

// A Filter is a read-only view of a filter's bytes. Any number of goroutines may probe it.
type Filter struct {
	first     layer  // without blocks in the filter of no keys
	rest      []byte // the further layers
	directory []byte // their entries
	columns   uint64
	seed      uint32
}

// Decode checks data, every byte of it, and returns a view of it. The caller must not change data
// while the filter is in use. An error matches the sentinel of corruption.
func Decode(data []byte) (*Filter, error) { return frame.Decode(data, frame.Ribbon, (*Filter).whole) }

// Probe is a single probe of encoded bytes, for callers that keep no Filter and
// whose own checksum covers data. Bytes that are no filter answer true.
func Probe(data []byte, h uint64) bool {
	var f Filter
	return !f.view(frame.Peek(data, frame.Ribbon)) || f.MayContainHash(h)
}

// view makes f a filter that cannot read out of bounds, or says false. It looks at
// the first layer only; the others are looked at when a probe gets there.
func (f *Filter) view(cells []byte, footer *frame.Footer) bool {
	columns, layers := uint64(footer.Params()&0xff), uint64(footer.Params()>>8)
	if columns < 1 || columns > maxColumns || layers > maxLayers || layers*entryLen > uint64(len(cells)) {
		return false
	}
	f.columns, f.seed = columns, footer.Seed()
	end := uint64(len(cells)) - layers*entryLen
	f.rest, f.directory = cells[:end], cells[end:]
	if layers == 0 {
		return end == 0
	}
	return f.next(&f.first)
}

// next cuts the next layer off f, or says false if it is not whole.
func (f *Filter) next(l *layer) bool {
	s, ok := shapeOf(f.columns, binary.LittleEndian.Uint64(f.directory))
	if !ok {
		return false
	}
	f.directory = f.directory[entryLen:]
	f.rest, ok = l.cut(s, f.rest, len(f.directory) == 0)
	return ok
}

// whole is view, and says false as well if the further layers are not whole or all
// layers together are not everything there is.
func (f *Filter) whole(cells []byte, footer *frame.Footer) bool {
	if !f.view(cells, footer) {
		return false
	}
	units := footer.Units()
	left, l := *f, f.first
	units -= l.blocks
	for len(left.directory) != 0 {
		if !left.next(&l) {
			return false
		}
		units -= l.blocks
	}
	return len(left.rest) == 0 && units == 0
}

// MayContainHash reports whether a key with this hash may have been added; false is certain. It
// allocates nothing. Nineteen probes in twenty read one place of the first layer.
func (f *Filter) MayContainHash(h uint64) bool {
	if f.first.blocks == 0 {
		return false
	}
	z := hash64.Seeded(h, f.seed)
	start := hash64.Reduce(z, f.first.starts())
	if f.first.bumps(start) {
		return f.descend(z)
	}
	return f.first.probe(z, start)
}

// descend looks in the further layers. Layers that are not whole may hold anything.
func (f *Filter) descend(z uint64) bool {
	var l layer
	for left := *f; len(left.directory) != 0; {
		if !left.next(&l) {
			return true
		}
		z = deeper(z)
		if start := hash64.Reduce(z, l.starts()); !l.bumps(start) {
			return l.probe(z, start)
		}
	}
	return true
}

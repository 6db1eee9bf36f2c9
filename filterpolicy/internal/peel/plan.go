package peel

import (
	"github.com/siftkv/siftkv/filterpolicy/internal/fingerprint"
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

// A Plan is what tells one family's filters from another's: how their arrays are
// laid out, and how the footer says so.
type Plan struct {
	Family frame.Family
	Bits   uint8 // of a fingerprint

	// Layout returns the layout for so many distinct keys, after so many sizes that
	// have been too small. Of the layout for no keys only Params counts.
	Layout func(keys uint64, growth int) Layout
}

// Finish appends the filter of hashes to dst. ok is false if Build gives up; dst is
// then returned as it was.
func (p Plan) Finish(dst []byte, hashes *hash64.List) (data []byte, ok bool) {
	l := p.Layout(0, 0)
	if hashes.Len() == 0 {
		return p.describe(l).Seal(dst, len(dst), p.Family), true
	}
	data, made, ok := Build(dst, hashes, uint64(p.Bits), func(keys uint64, growth int) Layout {
		l = p.Layout(keys, growth)
		return l
	})
	if !ok {
		return dst, false
	}
	d := p.describe(l)
	d.Keys, d.Seed = made.Keys, made.Seed
	d.Units, _ = l.Size()
	return d.Seal(data, len(dst), p.Family), true
}

// describe returns what the footer says of a layout.
func (p Plan) describe(l Layout) frame.Description {
	return frame.Description{Params: uint32(p.Bits) | l.Params()<<8}
}

// Expected returns the size, footer included, and the false-positive rate of a
// filter of so many distinct keys. The size is exact unless all seeds of the first
// size fail. A filter too large to build has no bits and says maybe to everything.
func (p Plan) Expected(keys int) (bitsPerKey, fpr float64) {
	switch {
	case keys <= 0:
		return 0, 0
	case uint64(keys) > fingerprint.MaxCells:
		return 0, 1
	}
	cells, _ := p.Layout(uint64(keys), 0).Size()
	if !fingerprint.Fits(cells, uint64(p.Bits)) {
		return 0, 1
	}
	size := fingerprint.Size(cells, uint64(p.Bits)) + frame.FooterLen
	return 8 * float64(size) / float64(keys), fingerprint.Rate(p.Bits)
}

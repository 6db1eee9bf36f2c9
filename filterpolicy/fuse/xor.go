package fuse

import (
	"math/bits"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/filterpolicy/internal/peel"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// An xor filter is a fuse filter with three segments of n cells. The footer's units are the cells
// of all three; its first parameter is F. The places of a key are
//
//	z = mix(h ^ seed * golden);  w = z * golden
//	a = (z * n) >> 64, this product and those below taken at 128 bits
//	b = n + (w * n) >> 64
//	c = 2 * n + ((w rotated left by 32) * n) >> 64
//
// and all else is as in a fuse filter.

// XorName is the name on disk of the family of package xor.
const XorName = "xor"

// thirds stands for the places of an xor filter where a fuse filter has their number.
const thirds = 0

// thirdsFor returns the layout for a number of distinct keys: 1.23 cells per key and 32 more, with
// which nearly every build succeeds. Each growth adds an eighth.
func thirdsFor(keys uint64, growth int) layout {
	cells := keys + keys*23/100 + 32
	cells += cells / 8 * uint64(growth)
	return layout{arity: thirds, span: cells/3 + 1}
}

// otherThirds returns the second and the third place of a hash.
func otherThirds(w, third uint64) (b, c uint64) {
	return hash64.Reduce(w, third) + third, hash64.Reduce(bits.RotateLeft64(w, 32), third) + 2*third
}

// ParseXor is Parse of package xor.
func ParseXor(args string) (Policy, error) {
	bits, err := peel.ParseBits(args)
	return Policy{bits, thirds}, spec.Wrap(err, XorName, args, "xor:8")
}

// DecodeXor is Decode for an xor filter.
func DecodeXor(data []byte) (*Filter, error) {
	return frame.Decode(data, frame.Xor, (*Filter).viewThirds)
}

// ProbeXor is Probe for an xor filter.
func ProbeXor(data []byte, h uint64) bool {
	var f Filter
	return !f.viewThirds(frame.Peek(data, frame.Xor)) || f.MayContainHash(h)
}

// viewThirds is view for an xor filter.
func (f *Filter) viewThirds(cells []byte, footer *frame.Footer) bool {
	n := footer.Units()
	f.layout.span = n / 3 // the arity of a new layout is thirds
	return n%3 == 0 && f.prints.Over(cells, n, uint64(footer.Params()), footer.Seed())
}

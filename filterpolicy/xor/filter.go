package xor

import (
	"math/bits"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/filterpolicy/internal/peel"
)

// The cells of an xor filter are fingerprints of F bits each, packed without gaps
// from the lowest bit of the first byte, and then seven zero bytes so that any cell
// can be read as a part of eight bytes. The footer's units are the cells, three
// thirds of n; its first parameter is F. The exclusive-or of a key's cells a, b and
// c is its fingerprint:
//
//	z = mix(h ^ seed * golden);  w = z * golden
//	a = (z * n) >> 64, this product and those below taken at 128 bits
//	b = n + (w * n) >> 64
//	c = 2 * n + ((w rotated left by 32) * n) >> 64
//	fingerprint = z % 2^F
//	mix(h): h ^= h>>32; h *= M; h ^= h>>29; h *= M; h ^= h>>32;  M = 0xd6e8feb86659fd93
//
// golden is 0x9e3779b97f4a7c15; arithmetic wraps at 64 bits.
const arity = 3

// A layout is the places of keys, one in each third.
type layout struct {
	third uint64 // cells
}

// layoutFor returns the layout for so many distinct keys: 1.23 cells per key and 32
// more, with which nearly every build succeeds. Each growth adds an eighth.
func layoutFor(keys uint64, growth int) layout {
	cells := keys + keys*23/100 + 32
	cells += cells / 8 * uint64(growth)
	return layout{cells/arity + 1}
}

// Size returns the number of cells and of places per key.
func (l layout) Size() (cells uint64, places int) { return arity * l.third, arity }

// Params returns no parameters: the footer's units tell all.
func (l layout) Params() uint32 { return 0 }

// Locate finds the places of mixed hashes.
func (l layout) Locate(zs []uint64, places []peel.Places) {
	places = places[:len(zs)]
	for i, z := range zs {
		a, b, c := l.locate(z)
		p := &places[i]
		p[0], p[1], p[2] = uint32(a), uint32(b), uint32(c)
	}
}

func (l *layout) locate(z uint64) (a, b, c uint64) {
	w := z * hash64.Golden
	a = hash64.Reduce(z, l.third)
	b = hash64.Reduce(w, l.third) + l.third
	c = hash64.Reduce(bits.RotateLeft64(w, 32), l.third) + 2*l.third
	return a, b, c
}

// A Filter is a read-only view of a filter's bytes. Any number of goroutines may
// probe it.
type Filter struct {
	layout layout
	prints peel.View
}

// Decode checks data, every byte of it, and returns a view of it. The caller must
// not change data while the filter is in use. An error matches the sentinel of
// corruption.
func Decode(data []byte) (*Filter, error) { return frame.Decode(data, frame.Xor, (*Filter).view) }

// Probe is a single probe of encoded bytes, for callers that keep no Filter and
// whose own checksum covers data. Bytes that are no filter answer true.
func Probe(data []byte, h uint64) bool {
	var f Filter
	return !f.view(frame.Peek(data, frame.Xor)) || f.MayContainHash(h)
}

// view makes f a filter that cannot read out of bounds, or says false.
func (f *Filter) view(cells []byte, footer *frame.Footer) bool {
	n := footer.Units()
	f.layout.third = n / arity
	return f.layout.third*arity == n && f.prints.Over(cells, n, uint64(footer.Params()), footer.Seed())
}

// MayContainHash reports whether a key with this hash may have been added; false is
// certain. It allocates nothing and reads three cells, whose places do not depend on
// each other's content.
func (f *Filter) MayContainHash(h uint64) bool {
	z := hash64.Mix(h ^ f.prints.Salt)
	a, b, c := f.layout.locate(z)
	return f.prints.Match3(z, a, b, c)
}

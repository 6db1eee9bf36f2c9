package fuse

import (
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/filterpolicy/internal/peel"
)

// A Filter is a read-only view of a filter's bytes. Any number of goroutines may probe it.
type Filter struct {
	layout layout
	prints peel.View
}

// Decode checks data, every byte of it, and returns a view of it. The caller must not change data
// while the filter is in use. An error matches the sentinel of corruption.
func Decode(data []byte) (*Filter, error) { return frame.Decode(data, frame.Fuse, (*Filter).view) }

// Probe is a single probe of encoded bytes, for callers that keep no Filter and
// whose own checksum covers data. Bytes that are no filter answer true.
func Probe(data []byte, h uint64) bool {
	var f Filter
	return !f.view(frame.Peek(data, frame.Fuse)) || f.MayContainHash(h)
}

// view makes f a filter that cannot read out of bounds, or says false.
func (f *Filter) view(cells []byte, footer *frame.Footer) bool {
	params := footer.Params()
	arity, log := params>>8&0xff, uint64(params>>16)
	if arity != 3 && arity != 4 || log > maxLog {
		return false
	}
	n, segments := footer.Units(), footer.Units()>>log
	if n == 0 && log != 0 || n != 0 && (n != segments<<log || segments < uint64(arity)) {
		return false
	}
	f.layout = newLayout(int(arity), log, segments)
	return f.prints.Over(cells, n, uint64(params&0xff), footer.Seed())
}

// MayContainHash reports whether a key with this hash may have been added; false is certain. It allocates nothing and
// reads three or four cells; their places do not depend on each other's content.
func (f *Filter) MayContainHash(h uint64) bool {
	z := hash64.Mix(h ^ f.prints.Salt)
	a, w, l := hash64.Reduce(z, f.layout.span), z*hash64.Golden, &f.layout
	switch l.arity {
	case 3:
		return f.prints.Match3(z, a, (a+l.length)^w>>shift1&l.mask, (a+2*l.length)^w>>shift2&l.mask)
	case 4:
		return f.prints.Match4(z, a, (a+l.length)^w>>shift1&l.mask, (a+2*l.length)^w>>shift2&l.mask,
			(a+3*l.length)^w>>shift3&l.mask)
	}
	b, c := otherThirds(w, l.span)
	return f.prints.Match3(z, a, b, c)
}

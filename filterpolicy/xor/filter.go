package xor

import (
	"github.com/siftkv/siftkv/filterpolicy/internal/fingerprint"
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

// A Filter is a read-only view of a filter's bytes. Any number of goroutines may
// probe it.
type Filter struct {
	layout
	prints fingerprint.View
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
	f.third = n / arity
	return f.third*arity == n && f.prints.Over(cells, n, uint64(footer.Params()), footer.Seed())
}

// MayContainHash reports whether a key with this hash may have been added; false is
// certain. It allocates nothing and reads three cells, whose places do not depend on
// each other's content.
func (f *Filter) MayContainHash(h uint64) bool {
	z := hash64.Mix(h ^ f.prints.Salt)
	a, b, c := f.locate(z)
	return f.prints.Match3(z, a, b, c)
}

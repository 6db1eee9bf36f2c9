package xor

import (
	"github.com/siftkv/siftkv/filterpolicy/internal/fingerprint"
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/mix"
)

// A Filter is a read-only view of a filter's bytes. Any number of goroutines may
// probe it.
type Filter struct {
	layout
	array []byte
	bits  uint64 // of a fingerprint; 0 in the filter of no keys
	salt  uint64 // what the seed changes in a hash
}

// Decode checks data, every byte of it, and returns a view of it. The caller must
// not change data while the filter is in use. An error matches the sentinel of
// corruption.
func Decode(data []byte) (*Filter, error) {
	cells, footer, err := frame.Open(data, frame.Xor)
	if err != nil {
		return nil, err
	}
	f := &Filter{}
	if !f.view(cells, footer) {
		return nil, frame.Corruptf("%d bytes do not hold %d cells of parameters %#x", len(cells), footer.Units(), footer.Params())
	}
	return f, nil
}

// Probe is a single probe of encoded bytes, for callers that keep no Filter and
// whose own checksum covers data. Bytes that are no filter answer true.
func Probe(data []byte, h uint64) bool {
	cells, footer := frame.Peek(data, frame.Xor)
	if footer == nil {
		return true
	}
	var f Filter
	return !f.view(cells, footer) || f.MayContainHash(h)
}

// view makes f a filter that cannot read out of bounds, or says false.
func (f *Filter) view(cells []byte, footer *frame.Footer) bool {
	n, bits := footer.Units(), uint64(footer.Params())
	f.array, f.bits, f.salt = cells, bits, uint64(footer.Seed())*mix.Golden
	f.third = n / arity
	if n == 0 {
		f.bits = 0
		return len(cells) == 0 && fingerprint.Valid(bits)
	}
	return f.third*arity == n && fingerprint.Holds(cells, n, bits)
}

// MayContainHash reports whether a key with this hash may have been added; false is
// certain. It allocates nothing and reads three cells, whose places do not depend on
// each other's content.
func (f *Filter) MayContainHash(h uint64) bool {
	z := mix.Mix(h ^ f.salt)
	a, b, c := f.locate(z)
	if f.bits == 8 {
		return f.array[a]^f.array[b]^f.array[c] == byte(z)
	}
	return fingerprint.Match3(f.array, f.bits, z, a, b, c)
}

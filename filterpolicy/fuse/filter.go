package fuse

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
	cells, footer, err := frame.Open(data, frame.Fuse)
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
	cells, footer := frame.Peek(data, frame.Fuse)
	if footer == nil {
		return true
	}
	var f Filter
	return !f.view(cells, footer) || f.MayContainHash(h)
}

// view makes f a filter that cannot read out of bounds, or says false.
func (f *Filter) view(cells []byte, footer *frame.Footer) bool {
	params := footer.Params()
	arity, log := params>>8&0xff, uint64(params>>16)
	if arity != 3 && arity != 4 || log > maxLog {
		return false
	}
	f.array, f.bits, f.salt = cells, uint64(params&0xff), uint64(footer.Seed())*mix.Golden
	n, segments := footer.Units(), footer.Units()>>log
	if n == 0 {
		valid := len(cells) == 0 && log == 0 && fingerprint.Valid(f.bits)
		f.bits = 0
		return valid
	}
	if n != segments<<log || segments < uint64(arity) || !fingerprint.Holds(cells, n, f.bits) {
		return false
	}
	f.layout = newLayout(int(arity), log, segments)
	return true
}

// MayContainHash reports whether a key with this hash may have been added; false is
// certain. It allocates nothing and reads three cells, or four, whose places do not
// depend on each other's content.
func (f *Filter) MayContainHash(h uint64) bool {
	z := mix.Mix(h ^ f.salt)
	w := z * mix.Golden
	a := mix.Reduce(z, f.span)
	b := (a + f.length) ^ w>>shift1&f.mask
	c := (a + 2*f.length) ^ w>>shift2&f.mask
	if f.arity == 4 {
		d := (a + 3*f.length) ^ w>>shift3&f.mask
		return fingerprint.Match4(f.array, f.bits, z, a, b, c, d)
	}
	if f.bits == 8 {
		return f.array[a]^f.array[b]^f.array[c] == byte(z)
	}
	return fingerprint.Match3(f.array, f.bits, z, a, b, c)
}

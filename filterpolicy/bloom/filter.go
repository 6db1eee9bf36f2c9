package bloom

import (
	"math/bits"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/filterpolicy/internal/sizing"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// The cells of a Bloom filter are an array of bits, a whole number of bytes. Bit p is bit p%8 of byte p/8. The footer's
// units are the bits of the array, its first parameter is the number of probes k. A hash h sets k bits:
//
//	a = mix(h); b = a rotated left by 32
//	for i = 1..k:  set bit (a * units) >> 64;  a += b;  b += i * 0x9e3779b97f4a7c15
//	mix(h): h ^= h>>32; h *= M; h ^= h>>29; h *= M; h ^= h>>32;  M = 0xd6e8feb86659fd93
//
// in 64-bit arithmetic that wraps, except for a * units, which is taken at 128 bits.
const cellBits = 8

// design is the family's own: an array of whole bytes, of which the footer counts the bits.
var design = sizing.Design{
	Family: frame.Bloom, UnitBits: cellBits, Counted: cellBits,
	Probes: probesFor, Fill: fill,
	Rate: func(keys, units float64, probes int) float64 { return rate(keys/(units*cellBits), probes) },
}

// A Builder collects hashes and turns them into a filter. It is for one goroutine at a time, and holds eight bytes per
// key until Finish.
type Builder struct {
	hashes hash64.List
	bits   spec.Bits
}

// AddHash adds a key's hash. A hash equal to the one before it is free.
func (b *Builder) AddHash(h uint64) { b.hashes.Add(h) }

// Finish appends the filter to dst and empties the builder for the next file. The filter of no keys says no to
// everything. Finish declines only when the filter would not fit the address space; dst is then returned as it was.
func (b *Builder) Finish(dst []byte) (data []byte, ok bool) {
	defer b.hashes.Reset()
	return design.Finish(dst, &b.hashes, b.bits)
}

func fill(cells []byte, hashes []uint64, probes int) {
	n := uint64(len(cells)) * cellBits
	for _, h := range hashes {
		p, step := start(h)
		for i := range probes {
			at := hash64.Reduce(p, n)
			cells[at/8] |= 1 << (at % 8)
			p, step = next(p, step, i)
		}
	}
}

// start returns the first point of h on the 64-bit circle, and its first step.
func start(h uint64) (p, step uint64) {
	p = hash64.Mix(h)
	return p, bits.RotateLeft64(p, 32)
}

// next returns the point after the i-th. A step that stayed the same would make keys with equal steps collide in whole
// runs, which small filters show.
func next(p, step uint64, i int) (q, nextStep uint64) {
	return p + step, step + uint64(i+1)*hash64.Golden
}

// A Filter is a read-only view of a filter's bytes. Any number of goroutines may probe it.
type Filter struct {
	cells  []byte // at least one
	probes int
}

// noBits stands in for the cells of an empty filter: one probe finds a clear bit.
var noBits = []byte{0}

// Decode checks data, every byte of it, and returns a view of it. The caller must not change data while the filter is
// in use. An error matches the sentinel of corruption.
func Decode(data []byte) (*Filter, error) { return frame.Decode(data, frame.Bloom, (*Filter).view) }

// Probe is a single probe of encoded bytes, for callers that keep no Filter and whose own checksum covers data. Bytes
// that are no filter answer true.
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

// MayContainHash reports whether a key with this hash may have been added; false is certain. It allocates nothing and
// stops at the first clear bit.
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

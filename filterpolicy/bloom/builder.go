package bloom

import (
	"math/bits"

	"github.com/siftkv/siftkv/filterpolicy/internal/bitarray"
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// The cells of a Bloom filter are an array of bits, a whole number of bytes. Bit p
// is bit p%8 of byte p/8. The footer's units are the bits of the array, its first
// parameter is the number of probes k. A hash h sets k bits:
//
//	a = mix(h); b = a rotated left by 32
//	for i = 1..k:  set bit (a * units) >> 64;  a += b;  b += i * 0x9e3779b97f4a7c15
//	mix(h): h ^= h>>32; h *= M; h ^= h>>29; h *= M; h ^= h>>32;  M = 0xd6e8feb86659fd93
//
// in 64-bit arithmetic that wraps, but for a * units, which is taken at 128 bits.
const cellBits = 8

// design is the family's own: an array of whole bytes, of which the footer counts the
// bits.
var design = bitarray.Design{
	Family: frame.Bloom, UnitBits: cellBits, Counted: cellBits,
	Probes: probesFor, Fill: fill,
	Rate: func(keys, units float64, probes int) float64 { return rate(keys/(units*cellBits), probes) },
}

// A Builder collects hashes and turns them into a filter. It is for one goroutine
// at a time, and holds eight bytes per key until Finish.
type Builder struct {
	hashes hash64.List
	bits   spec.Bits
}

// AddHash adds a key's hash. A hash equal to the one before it is free.
func (b *Builder) AddHash(h uint64) { b.hashes.Add(h) }

// Finish appends the filter to dst and empties the builder for the next file. The
// filter of no keys says no to everything. Finish declines only when the filter
// would not fit the address space; dst is then returned as it was.
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

// next returns the point after the i-th. A step that stayed the same would make
// keys with equal steps collide in whole runs, which small filters show.
func next(p, step uint64, i int) (q, nextStep uint64) {
	return p + step, step + uint64(i+1)*hash64.Golden
}

package fuse

import (
	"math/bits"

	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/filterpolicy/internal/peel"
)

// The cells of a fuse filter are fingerprints of F bits each, packed without gaps from the lowest bit of the first
// byte. Seven zero bytes follow, so that any cell can be read as a part of eight bytes. They form segments of a power
// of two of cells. The footer's units are the cells; its parameters are F, the number of places per key W, and the
// logarithm of the segments' length L. The exclusive-or of the W cells of a key is its fingerprint:
//
//	z = mix(h ^ seed * golden);  w = z * golden
//	a = (z * (units - (W-1) * L)) >> 64, the product taken at 128 bits
//	b = (a + L) ^ ((w >> 46) % L)       each in the segment after the one before
//	c = (a + 2 * L) ^ ((w >> 28) % L)
//	d = (a + 3 * L) ^ ((w >> 10) % L)   if W is 4
//	fingerprint = z % 2^F
//	mix(h): h ^= h>>32; h *= M; h ^= h>>29; h *= M; h ^= h>>32;  M = 0xd6e8feb86659fd93
//
// golden is 0x9e3779b97f4a7c15; arithmetic wraps at 64 bits.
const (
	shift1, shift2, shift3 = 46, 28, 10

	// maxLog segments are as long as 18 bits of w can tell.
	maxLog = 18
)

// A layout is the places of keys. Each is in one of W neighbouring segments, so keys of different ends of the filter
// never meet. That lets peeling begin at both ends of an array too full for peeling anywhere else.
type layout struct {
	arity  uint32
	log    uint32 // of length
	length uint64 // cells of a segment
	mask   uint64 // length - 1
	span   uint64 // cells that may be a key's first; a third of an xor filter's
}

func newLayout(arity int, log, segments uint64) layout {
	return layout{uint32(arity), uint32(log), 1 << log, 1<<log - 1, (segments - uint64(arity) + 1) << log}
}

// Size returns the number of cells and of places per key.
func (l layout) Size() (cells uint64, arity int) {
	if l.arity == thirds {
		return 3 * l.span, 3
	}
	return l.span + uint64(l.arity-1)<<l.log, int(l.arity)
}

// Params returns the footer's parameters after the bits of a fingerprint.
func (l layout) Params() uint32 { return l.arity | l.log<<8 }

// Locate finds the places of mixed hashes.
func (l layout) Locate(zs []uint64, places []peel.Places) {
	span, length, mask := l.span, l.length, l.mask
	places = places[:len(zs)]
	if l.arity == thirds {
		for i, z := range zs {
			b, c := otherThirds(z*hash64.Golden, span)
			p := &places[i]
			p[0], p[1], p[2] = uint32(hash64.Reduce(z, span)), uint32(b), uint32(c)
		}
		return
	}
	if l.arity == 4 {
		for i, z := range zs {
			a, w := hash64.Reduce(z, span), z*hash64.Golden
			places[i] = peel.Places{
				uint32(a),
				uint32((a + length) ^ w>>shift1&mask),
				uint32((a + 2*length) ^ w>>shift2&mask),
				uint32((a + 3*length) ^ w>>shift3&mask),
			}
		}
		return
	}
	for i, z := range zs {
		a, w := hash64.Reduce(z, span), z*hash64.Golden
		p := &places[i]
		p[0] = uint32(a)
		p[1] = uint32((a + length) ^ w>>shift1&mask)
		p[2] = uint32((a + 2*length) ^ w>>shift2&mask)
	}
}

// The sizes are tuned by simulation (simulation.md) so that some nine of ten
// attempts at building succeed at any number of keys n. They need
//
//	n * 1.085 + 2.6 * n^0.7 cells with three places per key,
//	n * 1.024 + 2.6 * n^0.7 cells with four,
//
// the first part being near the limit of large filters, the second the price of
// small ones, rounded up to whole segments, which have about n^0.6 cells.

// smallLogs are the segments' lengths for fewer than 512 keys, by the number of
// places less three and the logarithm of the number of keys.
var smallLogs = [2][9]uint64{
	{0, 1, 2, 3, 3, 4, 5, 5, 5},
	{0, 1, 1, 2, 3, 3, 4, 5, 5},
}

// extras holds 2.6 * n^0.7 for the powers of two. Multiplications alone give the same numbers on every machine.
var extras = func() (all [34]uint64) {
	const step = 1.6245047927124712 // 2^0.7
	x := 2.6
	for i := range all {
		all[i] = uint64(x)
		x *= step
	}
	return all
}()

// extra returns about 2.6 * n^0.7, on lines between the powers of two.
func extra(n uint64) uint64 {
	k := log2(n)
	return extras[k] + (extras[k+1]-extras[k])*(n-1<<k)>>k
}

func log2(n uint64) int { return bits.Len64(n) - 1 }

// segmentLog returns the logarithm of the length of segments for n keys.
func segmentLog(arity int, n uint64) uint64 {
	k := log2(n)
	if small := smallLogs[arity-3]; k < len(small) {
		return small[k]
	}
	return min(maxLog, (6*uint64(k)+7)/10)
}

// layoutFor returns the layout for a number of distinct keys, at most
// fingerprint.MaxCells. Each growth adds a sixteenth and a segment.
func layoutFor(arity int, keys uint64, growth int) layout {
	if arity == thirds {
		return thirdsFor(keys, growth)
	}
	if keys == 0 {
		return newLayout(arity, 0, uint64(arity))
	}
	perThousand := uint64(1085)
	if arity == 4 {
		perThousand = 1024
	}
	log := segmentLog(arity, keys)
	cells := keys*perThousand/1000 + extra(keys)
	segments := (cells + 1<<log - 1) >> log
	segments = max(segments, uint64(arity)) + uint64(growth)*(segments/16+1)
	return newLayout(arity, log, segments)
}

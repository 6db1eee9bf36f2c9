package ribbon

import (
	"math"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// Name is the family's name on disk.
const Name = "ribbon"

const (
	minBits = spec.One
	maxBits = 32 * spec.One
)

// A Policy is the family with its result bits. Policies are equal when their
// specs mean the same. The zero value is not a policy; use Parse.
type Policy struct {
	bits spec.Bits
}

// Parse reads result bits, from 1 to 32 with at most three decimals, or a rate: "7",
// "6.72", "rate=0.01". A rate means the least bits with a rate that is not above it.
func Parse(args string) (Policy, error) {
	bits, err := spec.ParseBitsOrRate(args, minBits, maxBits, limit)
	return Policy{bits}, spec.Wrap(err, Name, args, "ribbon:7")
}

// Name returns the family's name on disk.
func (p Policy) Name() string { return Name }

// String returns the spec, a rate as the bits that it stands for.
func (p Policy) String() string { return Name + ":" + p.bits.String() }

// NewBuilder returns an empty builder.
func (p Policy) NewBuilder() *Builder { return &Builder{width: widthOf(p.bits)} }

// Expected returns the size and the false-positive rate of a filter of the given number of distinct keys. The size
// counts the footer. It is exact up to 500 keys; beyond, how many keys are bumped depends on their hashes, which moves
// it by up to two blocks, or by half a per cent in large filters. The rate is exact where the result bits are whole;
// where they are not, it follows the share of hashes that are bumped. A filter too large to build has no bits and says
// maybe to everything.
func (p Policy) Expected(keys int) (bitsPerKey, fpr float64) {
	switch {
	case keys <= 0:
		return 0, 0
	case uint64(keys) > min(maxKeys, math.MaxInt/64):
		return 0, 1
	}
	w, n, reached := widthOf(p.bits), uint64(keys), 1.0
	size := uint64(frame.FooterLen)
	for layers := 0; ; layers++ {
		last := isLast(int(n), layers)
		s := w.shapeFor(n, last)
		words, thresholds := s.size(last)
		size += words + thresholds + entryLen
		if last {
			return 8 * float64(size) / float64(keys), fpr + reached*s.rate()
		}
		bumped := s.bumped(n)
		share := bumped / float64(n)
		fpr += reached * (1 - share) * s.rate()
		reached *= share
		n = uint64(math.Ceil(bumped))
	}
}

// bumped returns how many of a layer's n keys go to the next, by a fit to builds of 500 to 400 000
// keys. Those are the keys without a slot, and some that could have had one. The latter are a few
// per block, and what the end of the last block leaves unused.
func (s shape) bumped(n uint64) float64 {
	blocks := float64(s.blocks)
	unused := 20 + 1.47*math.Sqrt(blocks) + 0.0273*blocks
	return max(0, float64(n)-blockLen*blocks+unused)
}

// limit is the false-positive rate of large filters, which no smaller one's is above:
// with a share of the keys at one column more than b, it is 2^-b (1 - share/2).
func limit(b spec.Bits) float64 {
	share := (b % spec.One).Float()
	return math.Exp2(-float64(b/spec.One)) * (1 - share/2)
}

// rate is the false-positive rate of a layer: 2^-b where there are b columns, and half of it where there is one more.
func (s shape) rate() float64 {
	narrow := min(s.blocks-1, s.narrow) // no equation starts in the last block
	share := 1 - float64(narrow)/float64(s.blocks-1)
	return math.Exp2(-float64(s.columns)) * (1 - share/2)
}

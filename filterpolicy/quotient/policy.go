package quotient

import (
	"math"
	"strconv"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// Name is the family's name on disk.
const Name = "quotient"

// Bounds of the bits of a remainder. Merges may leave fewer than a policy may ask for.
const (
	minBits    = 2
	mergedBits = 1
	maxBits    = 32
)

// A Policy is the family with its remainder bits. Policies are equal when their specs
// mean the same. The zero value is not a policy; use Parse.
type Policy struct {
	bits uint8
}

// Parse reads the bits of a remainder, from 2 to 32, or a false-positive rate such as
// "rate=0.01", which means the fewest bits with a rate that is not above it.
func Parse(args string) (Policy, error) {
	bits, err := spec.ParseIntOrRate("remainder bits", args, minBits, maxBits, limit)
	return Policy{uint8(bits)}, spec.Wrap(err, Name, args, "quotient:7")
}

// Name returns the family's name on disk.
func (p Policy) Name() string { return Name }

// String returns the spec, a rate as the bits that it stands for.
func (p Policy) String() string { return Name + ":" + strconv.Itoa(int(p.bits)) }

// NewBuilder returns an empty builder.
func (p Policy) NewBuilder() *Builder { return p.NewBuilderFor(0) }

// NewBuilderFor returns an empty builder of filters with room for the given number of distinct keys, even if they get
// fewer. Filters for the same number of keys can be merged. A filter that gets more keys grows and can no longer be
// merged with the others.
func (p Policy) NewBuilderFor(keys int) *Builder {
	return &Builder{bits: uint64(p.bits), room: uint64(max(0, keys))}
}

// Expected returns the size and the false-positive rate of a filter of the given number of distinct keys. The size
// counts the footer; it is exact except for the runs that reach beyond the last quotient, which may take a few blocks
// more. A filter too large to build has no bits and says maybe to everything.
func (p Policy) Expected(keys int) (bitsPerKey, fpr float64) {
	if keys <= 0 {
		return 0, 0
	}
	quotients, ok := quotientsFor(uint64(keys), uint64(p.bits))
	if !ok {
		return 0, 1
	}
	n := float64(keys)
	blocks := (quotients + blockSlots - 1) / blockSlots
	size := blocks*blockLen(uint64(p.bits)) + trailerLen + frame.FooterLen
	return 8 * float64(size) / n, -math.Expm1(-n / float64(quotients) * math.Exp2(-float64(p.bits)))
}

// limit is the false-positive rate of large filters with that many remainder bits, filled
// to the load; no smaller one's is above it, as the quotients are rounded up.
func limit(bits int) float64 { return -math.Expm1(-load / 100.0 * math.Exp2(-float64(bits))) }

package xor

import (
	"strconv"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/filterpolicy/internal/peel"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// Name is the family's name on disk.
const Name = "xor"

// A Policy is the family with its fingerprint bits. Policies are equal when their
// specs mean the same. The zero value is not a policy; use Parse.
type Policy struct {
	bits uint8
}

// Parse reads fingerprint bits, from 4 to 32, or a false-positive rate such as
// "rate=0.004", which means the fewest bits whose rate is not above it.
func Parse(args string) (Policy, error) {
	bits, err := peel.ParseBits(args)
	return Policy{bits}, spec.Wrap(err, Name, args, "xor:8")
}

// Name returns the family's name on disk.
func (p Policy) Name() string { return Name }

// String returns the spec, a rate as the bits that it stands for.
func (p Policy) String() string { return Name + ":" + strconv.Itoa(int(p.bits)) }

// NewBuilder returns an empty builder.
func (p Policy) NewBuilder() *Builder { return &Builder{plan: p.plan()} }

func (p Policy) plan() peel.Plan {
	return peel.Plan{Family: frame.Xor, Bits: p.bits, Layout: func(keys uint64, growth int) peel.Layout {
		return layoutFor(keys, growth)
	}}
}

// Expected returns the size and the false-positive rate of a filter of the given
// number of distinct keys. The size counts the footer; it is exact unless eight
// attempts at building fail. A filter too large to build has no bits and says maybe
// to everything.
func (p Policy) Expected(keys int) (bitsPerKey, fpr float64) { return p.plan().Expected(keys) }

// A Builder collects hashes and turns them into a filter. It is for one goroutine
// at a time, and holds eight bytes per key until Finish. During Finish it needs 24
// more, beside the filter itself.
type Builder struct {
	hashes hash64.List
	plan   peel.Plan
}

// AddHash adds a key's hash. A hash equal to the one before it is free; any other
// duplicate costs time in Finish but no space in the filter.
func (b *Builder) AddHash(h uint64) { b.hashes.Add(h) }

// Finish appends the filter to dst and empties the builder for the next file. The
// filter of no keys says no to everything. Finish declines when no attempt
// succeeds, which takes hashes made to that end, or when there are more keys than
// the family's limit; dst is then returned as it was.
func (b *Builder) Finish(dst []byte) (data []byte, ok bool) {
	defer b.hashes.Reset()
	return b.plan.Finish(dst, &b.hashes)
}

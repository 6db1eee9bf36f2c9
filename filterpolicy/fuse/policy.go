package fuse

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/filterpolicy/internal/peel"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// Name is the family's name on disk.
const Name = "fuse"

// A Policy is the family, or that of package xor, with its fingerprint bits and the number of places of a key. Policies
// are equal when their specs mean the same. The zero value is not a policy; use Parse.
type Policy struct {
	bits, arity uint8 // arity may be thirds
}

// Parse reads "F" or "F,W": fingerprint bits from 4 to 32, and 3 or 4 places per key, which are 3 unless given. In
// place of F, "rate=0.004" means the fewest bits with a false-positive rate that is not above it.
func Parse(args string) (Policy, error) {
	p, err := parse(args)
	return p, spec.Wrap(err, Name, args, "fuse:8")
}

func parse(args string) (Policy, error) {
	first, second, given := strings.Cut(args, ",")
	bits, err := peel.ParseBits(first)
	if err != nil {
		return Policy{}, err
	}
	if !given || second == "3" {
		return Policy{bits, 3}, nil
	}
	if second != "4" {
		return Policy{}, fmt.Errorf("places per key must be 3 or 4, not %q", second)
	}
	return Policy{bits, 4}, nil
}

// Name returns the family's name on disk.
func (p Policy) Name() string {
	if p.arity == thirds {
		return XorName
	}
	return Name
}

// String returns the spec; the usual number of places is left out, and a rate is given as the bits that it stands for.
func (p Policy) String() string {
	s := p.Name() + ":" + strconv.Itoa(int(p.bits))
	if p.arity == 4 {
		s += ",4"
	}
	return s
}

// NewBuilder returns an empty builder.
func (p Policy) NewBuilder() *Builder { return &Builder{plan: p.plan()} }

func (p Policy) plan() peel.Plan {
	family := frame.Fuse
	if p.arity == thirds {
		family = frame.Xor
	}
	return peel.Plan{Family: family, Bits: p.bits, Layout: func(keys uint64, growth int) peel.Layout {
		return layoutFor(int(p.arity), keys, growth)
	}}
}

// Expected returns the size and the false-positive rate of a filter of the given number of distinct
// keys. The size counts the footer; it is exact unless eight attempts at building fail. A filter
// too large to build has no bits and says maybe to everything.
func (p Policy) Expected(keys int) (bitsPerKey, fpr float64) { return p.plan().Expected(keys) }

// A Builder collects hashes and turns them into a filter. It is for one goroutine at a time, and holds eight bytes per
// key until Finish. During Finish it needs 23 more at a million keys (24 for an xor filter), besides the filter itself.
type Builder struct {
	hashes hash64.List
	plan   peel.Plan
}

// AddHash adds a key's hash. A hash equal to the one before it is free; any other
// duplicate costs time in Finish but no space in the filter.
func (b *Builder) AddHash(h uint64) { b.hashes.Add(h) }

// Finish appends the filter to dst and empties the builder for the next file. The filter of no keys
// says no to everything. Finish declines if no attempt succeeds, which takes hashes made to that
// end, or if there are more keys than the family's limit; then it returns dst as it was.
func (b *Builder) Finish(dst []byte) (data []byte, ok bool) {
	defer b.hashes.Reset()
	return b.plan.Finish(dst, &b.hashes)
}

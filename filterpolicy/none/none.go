// Package none is the policy of having no filter.
//
// A file written with it has no filter block, and each lookup that reaches the file reads its index
// and, mostly, a data block. Choose it for stores with lookups that nearly always find their key,
// for stores that are only scanned, and to measure what filters save.
package none

import (
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// Name is the family's name on disk.
const Name = "none"

// A Policy declines to build.
type Policy struct{}

// Parse accepts the empty string, as the family has no parameters.
func Parse(args string) (Policy, error) {
	if args != "" {
		return Policy{}, spec.Errorf(Name+":"+args, Name, "no filter has no parameters")
	}
	return Policy{}, nil
}

// Name returns the family's name on disk.
func (Policy) Name() string { return Name }

// String returns the spec.
func (Policy) String() string { return Name }

// NewBuilder returns a builder that keeps nothing.
func (Policy) NewBuilder() *Builder { return &Builder{} }

// Expected returns no bits, and a "maybe" for every key.
func (Policy) Expected(int) (bitsPerKey, fpr float64) { return 0, 1 }

// A Builder keeps nothing and declines.
type Builder struct{}

// AddHash drops h.
func (*Builder) AddHash(uint64) {}

// AddKey drops key.
func (*Builder) AddKey([]byte) {}

// Finish returns dst and false: the file gets no filter.
func (*Builder) Finish(dst []byte) (data []byte, ok bool) { return dst, false }

// A Filter knows nothing.
type Filter struct{}

// Decode accepts no bytes at all; a block of this family cannot exist.
func Decode(data []byte) (*Filter, error) {
	if len(data) != 0 {
		return nil, frame.Corruptf("%d bytes of a family that writes none", len(data))
	}
	return &Filter{}, nil
}

// MayContainHash returns true.
func (*Filter) MayContainHash(uint64) bool { return true }

// MayContainRange returns true.
func (*Filter) MayContainRange(_, _ []byte) bool { return true }

// Probe returns true.
func Probe([]byte, uint64) bool { return true }

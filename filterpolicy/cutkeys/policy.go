package cutkeys

import (
	"strconv"

	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// Name is the family's name on disk.
const Name = "cut"

// maxExtra is the most bits that a key keeps beyond what tells it from its neighbours.
const maxExtra = 16

// A Policy is the family with its bits beyond the cut. Policies are equal when their specs
// mean the same. The zero value is "cut:0".
type Policy struct {
	extra uint8
}

// Parse reads the bits that a key keeps beyond what tells it from its neighbours, 0 to 16, or a rate: "6", "rate=0.01".
// A rate means the least bits with which narrow empty ranges among random keys are not passed more often.
func Parse(args string) (Policy, error) {
	extra, err := spec.ParseIntOrRate("extra bits", args, 0, maxExtra, narrow)
	return Policy{uint8(extra)}, spec.Wrap(err, Name, args, "cut:6")
}

// Name returns the family's name on disk.
func (p Policy) Name() string { return Name }

// String returns the spec, a rate as the bits that it stands for.
func (p Policy) String() string { return Name + ":" + strconv.Itoa(int(p.extra)) }

// NewBuilder returns an empty builder.
func (p Policy) NewBuilder() *Builder { return &Builder{extra: int(p.extra)} }

package filterpolicy

import (
	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/filterpolicy/bloom"
	"github.com/siftkv/siftkv/filterpolicy/cuckoo"
	"github.com/siftkv/siftkv/filterpolicy/fuse"
	"github.com/siftkv/siftkv/filterpolicy/gcs"
	"github.com/siftkv/siftkv/filterpolicy/none"
	"github.com/siftkv/siftkv/filterpolicy/quotient"
	"github.com/siftkv/siftkv/filterpolicy/ribbon"
	"github.com/siftkv/siftkv/filterpolicy/xor"
)

// A family is what this package knows of a family package.
type family struct {
	name    string
	usage   string // the form of its spec, for errors
	example string // a spec
	parse   func(args string) (Policy, error)
	decode  func(data []byte) (Filter, error)
	probe   func(data []byte, h uint64) bool
}

// families lists every family; a new one is one line here.
var families = []family{
	register(none.Name, "none", "none", none.Parse, none.Decode, none.Probe),
	register(bloom.Name, "bloom:BITS", "bloom:10", bloom.Parse, bloom.Decode, bloom.Probe),
	register(blocked.Name, "blocked:BITS", "blocked:10", blocked.Parse, blocked.Decode, blocked.Probe),
	register(cuckoo.Name, "cuckoo:BITS,SLOTS", "cuckoo:12,4", cuckoo.Parse, cuckoo.Decode, cuckoo.Probe),
	register(ribbon.Name, "ribbon:BITS", "ribbon:7", ribbon.Parse, ribbon.Decode, ribbon.Probe),
	register(gcs.Name, "gcs:BITS", "gcs:7", gcs.Parse, gcs.Decode, gcs.Probe),
	register(quotient.Name, "quotient:BITS", "quotient:7", quotient.Parse, quotient.Decode, quotient.Probe),
	register(xor.Name, "xor:BITS", "xor:8", xor.Parse, xor.Decode, xor.Probe),
	register(fuse.Name, "fuse:BITS,PLACES", "fuse:8", fuse.Parse, fuse.Decode, fuse.Probe),
}

func familyOf(name string) (family, bool) {
	for _, f := range families {
		if f.name == name {
			return f, true
		}
	}
	return family{}, false
}

// concrete is the Policy of a family package: a Policy but for NewBuilder, which
// returns the family's own type.
type concrete[B Builder] interface {
	comparable
	Name() string
	String() string
	NewBuilder() B
	Expected(keys int) (bitsPerKey, fpr float64)
}

// policy makes a Policy of a concrete one.
type policy[P concrete[B], B Builder] struct{ of P }

func (p policy[P, B]) Name() string        { return p.of.Name() }
func (p policy[P, B]) String() string      { return p.of.String() }
func (p policy[P, B]) NewBuilder() Builder { return p.of.NewBuilder() }

func (p policy[P, B]) expected(keys int) (bitsPerKey, fpr float64) { return p.of.Expected(keys) }

// register gives a family package's functions their common types.
func register[P concrete[B], B Builder, F Filter](
	name, usage, example string,
	parse func(args string) (P, error),
	decode func(data []byte) (F, error),
	probe func(data []byte, h uint64) bool,
) family {
	return family{
		name: name, usage: usage, example: example,
		probe: probe,
		parse: func(args string) (Policy, error) {
			p, err := parse(args)
			if err != nil {
				return nil, err
			}
			return policy[P, B]{p}, nil
		},
		decode: func(data []byte) (Filter, error) {
			f, err := decode(data)
			if err != nil {
				return nil, err
			}
			return f, nil
		},
	}
}

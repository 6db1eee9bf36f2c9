package filterpolicy

import (
	"strings"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/filterpolicy/bloom"
	"github.com/siftkv/siftkv/filterpolicy/cuckoo"
	"github.com/siftkv/siftkv/filterpolicy/fuse"
	"github.com/siftkv/siftkv/filterpolicy/gcs"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
	"github.com/siftkv/siftkv/filterpolicy/none"
	"github.com/siftkv/siftkv/filterpolicy/quotient"
	"github.com/siftkv/siftkv/filterpolicy/ribbon"
	"github.com/siftkv/siftkv/filterpolicy/xor"
)

// ErrBadSpec is matched by the errors of Parse.
var ErrBadSpec = spec.ErrBadSpec

// Parse makes a policy from its spec, a family's name and, after a colon, its parameters:
//
//	none
//	bloom:BITS          bits per key, 1 to 64, up to three decimals
//	blocked:BITS        bits per key, 1 to 32, up to three decimals
//	cuckoo:BITS         bits per fingerprint, 4 to 32; 4 slots per bucket
//	cuckoo:BITS,SLOTS   2, 4 or 8 slots per bucket
//	cuckoo:BITS,4,semisort
//	                    semi-sorted buckets: a bit less per slot; BITS from 5 to 32
//	ribbon:BITS         result bits, 1 to 32, up to three decimals
//	gcs:BITS            logarithm of the rate, 1 to 32, up to three decimals
//	quotient:BITS       bits per remainder, 2 to 32
//	xor:BITS            bits per fingerprint, 4 to 32
//	fuse:BITS           bits per fingerprint, 4 to 32; 3 places per key
//	fuse:BITS,PLACES    3 or 4 places per key
//	salted:SPEC         any of these for hashes mixed with a secret salt of each file, so that
//	                    nobody can compute keys that pass; not for files that must come out
//	                    the same everywhere, nor for Probe
//
// In place of BITS, "rate=0.01" means the least bits with a false-positive rate, by Expected for
// files of any size, of at most this one: "blocked:rate=0.01", "cuckoo:rate=0.001,2". A rate is a
// decimal fraction of at most 0.5; the lowest is that of the most bits. The policy's String gives
// the bits.
//
// An error matches ErrBadSpec, says what is wrong and what the bounds are, and
// shows a spec that is right.
func Parse(s string) (Policy, error) {
	name, args, given := strings.Cut(s, ":")
	if name == SaltedName {
		return parseSalted(args)
	}
	f, ok := familyOf(name)
	if !ok {
		return nil, spec.Errorf(s, "blocked:10", "unknown family; the families are %s", usages())
	}
	if args == "" && (given || f.usage != f.name) {
		return nil, spec.Errorf(s, f.example, "its form is %s", f.usage)
	}
	return f.parse(args)
}

func usages() string {
	all := make([]string, len(families))
	for i, f := range families {
		all[i] = f.usage
	}
	return strings.Join(all, ", ")
}

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

// concrete is the Policy of a family package: a Policy except for NewBuilder, which
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

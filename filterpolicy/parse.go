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
// In place of BITS, "rate=0.01" means the least bits with a false-positive rate, by Expected for files of any size, of
// at most this one: "blocked:rate=0.01", "cuckoo:rate=0.001,2". A rate is a decimal fraction of at most 0.5; the lowest
// is that of the most bits. The policy's String gives the bits.
//
// An error matches ErrBadSpec, says what is wrong and what the bounds are, and shows a spec that is right.
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

// Default returns the policy of stores and files that set none, "blocked:10".
func Default() Policy { return must(parseAs(&parseBlocked, "10")) }

// None returns the policy "none": no filters.
func None() Policy { return must(parseAs(&parseNone, "")) }

// must returns what a spec of this package makes.
func must[P any](p P, err error) P {
	if err != nil {
		panic(err)
	}
	return p
}

func usages() string {
	return strings.Join(each(families, func(f family) string { return f.usage }), ", ")
}

func each[F any](families []F, of func(F) string) []string {
	all := make([]string, len(families))
	for i, f := range families {
		all[i] = of(f)
	}
	return all
}

// A family is what this package knows of a family package.
type family struct {
	name    string
	usage   string // the form of its spec, for errors
	example string // a spec
	decode  func(data []byte) (Filter, error)
	probe   func(data []byte, h uint64) bool
}

// families lists every family. A new one is a line here, a case of parse and a variable for its parser.
var families = []family{
	{none.Name, "none", "none", decoder[Filter](none.Decode), none.Probe},
	{bloom.Name, "bloom:BITS", "bloom:10", decoder[Filter](bloom.Decode), bloom.Probe},
	{blocked.Name, "blocked:BITS", "blocked:10", decoder[Filter](blocked.Decode), blocked.Probe},
	{cuckoo.Name, "cuckoo:BITS,SLOTS", "cuckoo:12,4", decoder[Filter](cuckoo.Decode), cuckoo.Probe},
	{ribbon.Name, "ribbon:BITS", "ribbon:7", decoder[Filter](ribbon.Decode), ribbon.Probe},
	{gcs.Name, "gcs:BITS", "gcs:7", decoder[Filter](gcs.Decode), gcs.Probe},
	{quotient.Name, "quotient:BITS", "quotient:7", decoder[Filter](quotient.Decode), quotient.Probe},
	{xor.Name, "xor:BITS", "xor:8", decoder[Filter](xor.Decode), xor.Probe},
	{fuse.Name, "fuse:BITS,PLACES", "fuse:8", decoder[Filter](fuse.Decode), fuse.Probe},
}

// parse is no function of the list: a program that parses no spec links no builder except the one of its policy.
func (f family) parse(args string) (Policy, error) {
	switch f.name {
	case none.Name:
		return parseAs(&parseNone, args)
	case bloom.Name:
		return parseAs(&parseBloom, args)
	case blocked.Name:
		return parseAs(&parseBlocked, args)
	case cuckoo.Name:
		return parseAs(&parseCuckoo, args)
	case ribbon.Name:
		return parseAs(&parseRibbon, args)
	case gcs.Name:
		return parseAs(&parseGcs, args)
	case quotient.Name:
		return parseAs(&parseQuotient, args)
	case xor.Name:
		return parseAs(&parseXor, args)
	case fuse.Name:
		return parseAs(&parseFuse, args)
	}
	panic("filterpolicy: parse has no case for " + f.name)
}

func familyOf(name string) (family, bool) {
	for _, f := range families {
		if f.name == name {
			return f, true
		}
	}
	return family{}, false
}

// concrete is the Policy of a family package: a Policy except for NewBuilder, which returns the family's own type.
type concrete[B Builder] interface {
	comparable
	Name() string
	String() string
	NewBuilder() B
	Expected(keys int) (bitsPerKey, fpr float64)
}

// A parser is the Parse of a family package. Policies are comparable, and have it by its address.
type parser[P any] func(args string) (P, error)

var (
	parseNone     parser[none.Policy]     = none.Parse
	parseBloom    parser[bloom.Policy]    = bloom.Parse
	parseBlocked  parser[blocked.Policy]  = blocked.Parse
	parseCuckoo   parser[cuckoo.Policy]   = cuckoo.Parse
	parseRibbon   parser[ribbon.Policy]   = ribbon.Parse
	parseGcs      parser[gcs.Policy]      = gcs.Parse
	parseQuotient parser[quotient.Policy] = quotient.Parse
	parseXor      parser[xor.Policy]      = xor.Parse
	parseFuse     parser[fuse.Policy]     = fuse.Parse
)

// policy makes a Policy of a concrete one.
type policy[P concrete[B], B Builder] struct {
	of    P
	parse *parser[P]
}

func (p policy[P, B]) Name() string        { return p.of.Name() }
func (p policy[P, B]) String() string      { return p.of.String() }
func (p policy[P, B]) NewBuilder() Builder { return p.of.NewBuilder() }

func (p policy[P, B]) expected(keys int) (bitsPerKey, fpr float64) { return p.of.Expected(keys) }

// withArgs makes a policy of the same family with other parameters.
func (p policy[P, B]) withArgs(args string) (Policy, error) { return parseAs(p.parse, args) }

// parseAs makes a policy of the family that parse parses.
func parseAs[P concrete[B], B Builder](parse *parser[P], args string) (Policy, error) {
	p, err := (*parse)(args)
	if err != nil {
		return nil, err
	}
	return policy[P, B]{p, parse}, nil
}

// decoder gives a family package's function the common type I of filters, which F is.
func decoder[I, F any](decode func(data []byte) (F, error)) func(data []byte) (I, error) {
	return func(data []byte) (filter I, err error) {
		f, err := decode(data)
		if err != nil {
			return filter, err
		}
		return any(f).(I), nil
	}
}

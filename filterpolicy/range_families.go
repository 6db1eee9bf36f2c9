package filterpolicy

import (
	"strings"

	"github.com/siftkv/siftkv/filterpolicy/cutkeys"
	"github.com/siftkv/siftkv/filterpolicy/none"
)

// A rangeFamily is what this package knows of a family of range filters.
type rangeFamily struct {
	name    string
	usage   string // the form of its spec, for errors
	example string // a spec
	decode  func(data []byte) (RangeFilter, error)
}

// rangeFamilies lists every family of range filters. A new one is a line here and a case of parse.
var rangeFamilies = []rangeFamily{
	{none.Name, "none", "none", decoder[RangeFilter](none.Decode)},
	{cutkeys.Name, "cut:BITS", "cut:6", decoder[RangeFilter](cutkeys.Decode)},
}

// parse is no function of the list, as that of a family.
func (f rangeFamily) parse(args string) (RangePolicy, error) {
	switch f.name {
	case none.Name:
		return rangePolicyOf(none.Parse(args))
	case cutkeys.Name:
		return rangePolicyOf(cutkeys.Parse(args))
	}
	panic("filterpolicy: parse has no case for " + f.name)
}

func rangeFamilyOf(name string) (rangeFamily, bool) {
	for _, f := range rangeFamilies {
		if f.name == name {
			return f, true
		}
	}
	return rangeFamily{}, false
}

func rangeUsages() string {
	return strings.Join(each(rangeFamilies, func(f rangeFamily) string { return f.usage }), ", ")
}

// concreteRange is the RangePolicy of a family package: a RangePolicy except for its
// builder, which is of the family's own type.
type concreteRange[B RangeBuilder] interface {
	comparable
	Name() string
	String() string
	NewBuilder() B
	Expected(keys int) (bitsPerKey, fpr float64)
}

// rangePolicy makes a RangePolicy of a concrete one.
type rangePolicy[P concreteRange[B], B RangeBuilder] struct{ of P }

func (p rangePolicy[P, B]) Name() string                  { return p.of.Name() }
func (p rangePolicy[P, B]) String() string                { return p.of.String() }
func (p rangePolicy[P, B]) NewRangeBuilder() RangeBuilder { return p.of.NewBuilder() }

func (p rangePolicy[P, B]) expected(keys int) (bitsPerKey, fpr float64) { return p.of.Expected(keys) }

// rangePolicyOf gives what a family package parsed its common type.
func rangePolicyOf[P concreteRange[B], B RangeBuilder](p P, err error) (RangePolicy, error) {
	if err != nil {
		return nil, err
	}
	return rangePolicy[P, B]{p}, nil
}

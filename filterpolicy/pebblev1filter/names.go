package pebblev1filter

import (
	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/bloom"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/keyfilter"
)

// Filters returns a policy of each family under its name, for pebble.Options.Filters: a store opened
// with it reads every filter that this package has ever written to it, whatever its levels write now.
// The map is the caller's.
func Filters() map[string]pebble.FilterPolicy {
	all := make(map[string]pebble.FilterPolicy)
	for name, k := range keyfilter.All(nil) {
		all[name] = policy{k}
	}
	return all
}

// ByName returns a function for pebble.ParseHooks.NewFilterPolicy, without which Options.Parse takes
// every filter_policy of the text for none and reports no error:
//
//	opts.Parse(text, &pebble.ParseHooks{NewFilterPolicy: pebblev1filter.ByName(policy)})
//
// A name says which family, and not how many bits per key. So new tables get the bits of the last
// given policy of that family, or else those for one false positive in a hundred. The function
// knows the names of this package, "none", and that of Pebble's Bloom filter, with Pebble's usual
// ten bits; any other is an error. It is safe for concurrent use.
func ByName(policies ...filterpolicy.Policy) func(name string) (pebble.FilterPolicy, error) {
	all := keyfilter.All(policies)
	return func(name string) (pebble.FilterPolicy, error) {
		if k, ok := all[name]; ok {
			return policy{k}, nil
		}
		switch own := bloom.FilterPolicy(10); name {
		case own.Name():
			return own, nil
		case "none": // which is what Options.String makes of no policy
			return nil, nil
		}
		return nil, keyfilter.Unknown(name)
	}
}

// Package pebblev1filter is package pebblefilter for Pebble's first major version
// (github.com/cockroachdb/pebble, v1.1.5), whose import path differs. What is said there holds
// here; a table that one version wrote with a filter of this module, the other reads with it.
package pebblev1filter

import (
	"github.com/cockroachdb/pebble"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/internal/keyfilter"
)

// New returns p as a policy of Pebble v1. It is safe for concurrent use. The
// policy "none", and any policy that does not come from filterpolicy.Parse, becomes
// nil, which is Pebble's word for no filter.
func New(p filterpolicy.Policy) pebble.FilterPolicy {
	k, ok := keyfilter.New(p)
	if !ok {
		return nil
	}
	return policy{k}
}

// policy is a keyfilter.Policy with Pebble's types.
type policy struct{ of *keyfilter.Policy }

func (p policy) Name() string { return p.of.Name() }

func (p policy) MayContain(_ pebble.FilterType, filter, key []byte) bool {
	return p.of.MayContain(filter, key)
}

func (p policy) NewWriter(pebble.FilterType) pebble.FilterWriter { return p.of.NewWriter() }

// Package pebblev1filter is package pebblefilter for Pebble's first major version (github.com/cockroachdb/pebble,
// v1.1.0 and later), which has another import path. What is said there holds here; a table that one version wrote with
// a filter of this module, the other reads with it.
//
// Two things are necessary here that v2 does by itself. Options.Levels is empty until EnsureDefaults has been called,
// or the program has made its levels: a loop over them that comes first sets nothing, and the store has no filters.
// EnsureDefaults makes one level; its policy then counts for all seven:
//
//	opts := &pebble.Options{}
//	opts.EnsureDefaults()
//	for i := range opts.Levels {
//		opts.Levels[i].FilterPolicy = pebblev1filter.New(policy)
//	}
//
// And the default comparer has no Split, without which SeekPrefixGE panics: a program that uses it
// needs a comparer of its own, with a Name of its own and a Split.
package pebblev1filter

import (
	"github.com/cockroachdb/pebble"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/keyfilter"
)

// New returns p as a policy of Pebble v1. It is safe for concurrent use. The
// policy "none", one with a salt, and any that does not come from filterpolicy.Parse, becomes
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

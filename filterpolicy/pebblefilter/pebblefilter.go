// Package pebblefilter puts the filters of this module into Pebble
// (github.com/cockroachdb/pebble/v2):
//
//	policy, err := filterpolicy.Parse("blocked:10")
//	...
//	opts := &pebble.Options{}
//	opts.EnsureDefaults()
//	for i := range opts.Levels {
//		opts.Levels[i].FilterPolicy = pebblefilter.New(policy)
//	}
//
// Nothing else changes. Older tables keep the filter they have, and Pebble reads them with it as long as that filter's
// policy is in Options.Filters or on a level. The function Filters returns all policies for that. Otherwise Pebble
// reads the tables without a filter, which is slower and just as right. The same holds the other way for a store that
// is opened without this package again. A program that reads Pebble's options from text needs ByName.
//
// The policy's name, "siftkv." and the family, is written to each table. It does
// not tell the bits per key, which are in the filter: after a change of
// "blocked:10" to "blocked:12" old tables and new ones are read by the same policy.
//
// Pebble hands over a filter's bytes with each lookup and keeps no state for them, so each probe decodes the bytes
// again. That costs some nanoseconds, and Pebble's own checksum, which it verifies when a block is read, stands in for
// the filter's. It also hands over the key, so each table that is asked hashes it once more.
//
// Pebble does not ask the filters of the last level in Get, with any policy; an iterator opened with UseL6Filters does,
// in SeekPrefixGE.
package pebblefilter

import (
	"github.com/cockroachdb/pebble/v2"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/keyfilter"
)

// New returns p as a Pebble policy. It is safe for concurrent use. The policy "none", one with a salt,
// and any that does not come from filterpolicy.Parse, becomes pebble.NoFilterPolicy.
func New(p filterpolicy.Policy) pebble.FilterPolicy {
	k, ok := keyfilter.New(p)
	if !ok {
		return pebble.NoFilterPolicy
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

package pebblefilter

import (
	"github.com/cockroachdb/pebble/v2"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/internal/keyfilter"
)

// New returns p as a Pebble policy. It is safe for concurrent use. The policy
// "none", and any policy that does not come from filterpolicy.Parse, becomes
// pebble.NoFilterPolicy.
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

package oracle

import (
	"github.com/cockroachdb/pebble/v2"

	"github.com/siftkv/siftkv/filterpolicy"
)

// Pebble returns the policy with Pebble's types.
func (p Policy) Pebble() pebble.FilterPolicy { return pebblePolicy{p} }

type pebblePolicy struct{ of Policy }

// Name returns the family's name.
func (p pebblePolicy) Name() string { return p.of.Name() }

// MayContain asks the key set that filter names, and says yes if there is none.
func (p pebblePolicy) MayContain(_ pebble.FilterType, filter, key []byte) bool {
	set := p.of.lookUp(filter)
	return set == nil || set.MayContainHash(filterpolicy.Hash(key))
}

// NewWriter returns an empty builder.
func (p pebblePolicy) NewWriter(pebble.FilterType) pebble.FilterWriter {
	return &pebbleWriter{p.of.NewBuilder()}
}

type pebbleWriter struct{ of filterpolicy.Builder }

// AddKey adds the hash of a key.
func (w *pebbleWriter) AddKey(key []byte) { w.of.AddHash(filterpolicy.Hash(key)) }

// Finish keeps the hashes and appends the number of their set to dst.
func (w *pebbleWriter) Finish(dst []byte) []byte {
	dst, _ = w.of.Finish(dst)
	return dst
}

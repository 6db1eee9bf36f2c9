package pebblefilter

import (
	"github.com/cockroachdb/pebble/v2"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/none"
)

// New returns p as a Pebble policy. It is safe for concurrent use. The policy
// "none", and any policy that does not come from filterpolicy.Parse, becomes
// pebble.NoFilterPolicy.
func New(p filterpolicy.Policy) pebble.FilterPolicy {
	probe, ok := filterpolicy.Probe(p.Name())
	if !ok || p.Name() == none.Name {
		return pebble.NoFilterPolicy
	}
	return &policy{of: p, name: "siftkv." + p.Name(), probe: probe}
}

// unfiltered is the filter of a table whose filter could not be built: bytes that no
// family takes for a filter, to which every probe answers maybe.
var unfiltered = []byte{0}

type policy struct {
	of    filterpolicy.Policy
	name  string
	probe func(data []byte, h uint64) bool
}

// Name returns the name that Pebble writes to tables and compares when it reads
// them.
func (p *policy) Name() string { return p.name }

// MayContain reports whether the table with this filter may contain the key. Bytes
// that are no filter answer true. It does not allocate.
func (p *policy) MayContain(_ pebble.FilterType, filter, key []byte) bool {
	return p.probe(filter, filterpolicy.Hash(key))
}

// NewWriter returns a writer for one table's filter.
func (p *policy) NewWriter(pebble.FilterType) pebble.FilterWriter {
	return writer{p.of.NewBuilder()}
}

type writer struct{ b filterpolicy.Builder }

// AddKey adds a key or a prefix. Pebble adds the prefix of each key, so that equal
// ones follow each other; they are free.
func (w writer) AddKey(key []byte) { w.b.AddHash(filterpolicy.Hash(key)) }

// Finish appends the filter to buf. Pebble has no way to go without one, so a build
// that declines yields a filter that always says maybe.
func (w writer) Finish(buf []byte) []byte {
	data, ok := w.b.Finish(buf)
	if !ok {
		return append(buf, unfiltered...)
	}
	return data
}

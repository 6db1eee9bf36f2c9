// Package keyfilter gives a policy the form that engines with keys and bytes want:
// a filter is asked with its encoded bytes and a key, each time anew. The Pebble
// adapters are this form with each version's types around it.
package keyfilter

import (
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/none"
)

// A Policy asks and makes filters. It is safe for concurrent use.
type Policy struct {
	of    filterpolicy.Policy
	name  string
	probe func(data []byte, h uint64) bool
}

// New returns p in this form, or false for the policy "none" and for a policy that
// does not come from filterpolicy.Parse.
func New(p filterpolicy.Policy) (*Policy, bool) {
	probe, ok := filterpolicy.Probe(p.Name())
	if !ok || p.Name() == none.Name {
		return nil, false
	}
	return &Policy{of: p, name: "siftkv." + p.Name(), probe: probe}, true
}

// Name returns "siftkv." and the family's name: what an engine writes to its
// tables, and compares when it reads them.
func (p *Policy) Name() string { return p.name }

// MayContain reports whether the table with this filter may contain the key. Bytes
// that are no filter answer true. It does not allocate.
func (p *Policy) MayContain(filter, key []byte) bool {
	return p.probe(filter, filterpolicy.Hash(key))
}

// NewWriter returns a writer for one table's filter.
func (p *Policy) NewWriter() Writer { return Writer{p.of.NewBuilder()} }

// A Writer makes the filter of one table. It is for one goroutine.
type Writer struct{ b filterpolicy.Builder }

// unfiltered is the filter of a table whose filter could not be built: bytes that
// no family takes for a filter, to which every probe answers maybe.
var unfiltered = []byte{0}

// AddKey adds a key or a prefix. Engines add the prefix of each key, so that equal
// ones follow each other; they are free.
func (w Writer) AddKey(key []byte) { w.b.AddHash(filterpolicy.Hash(key)) }

// Finish appends the filter to buf. The engine has no way to go without one, so a
// build that declines yields a filter that always says maybe.
func (w Writer) Finish(buf []byte) []byte {
	data, ok := w.b.Finish(buf)
	if !ok {
		return append(buf, unfiltered...)
	}
	return data
}

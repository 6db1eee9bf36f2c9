// Package keyfilter gives a policy the form that engines with keys and bytes want: each
// query has a filter's encoded bytes and a key. The Pebble adapters are this form with
// each version's types around it.
package keyfilter

import (
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/none"
)

// A Policy asks and makes filters. It is safe for concurrent use.
type Policy struct {
	Decoder
	of filterpolicy.Policy
}

// New returns p in this form, or false for the policy "none" and for a policy that
// does not come from filterpolicy.Parse. A policy of another origin may write anything
// under a family's name, and tables say no more than the name.
func New(p filterpolicy.Policy) (*Policy, bool) {
	if ours, err := filterpolicy.Parse(p.String()); err != nil || ours != p {
		return nil, false
	}
	d, ok := newDecoder(p.Name())
	return &Policy{Decoder: d, of: p}, ok
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

// Build appends the filter to buf, or nothing and false if the build declines.
func (w Writer) Build(buf []byte) (data []byte, ok bool) { return w.b.Finish(buf) }

// Finish appends the filter to buf, for an engine that has no way to go without one: a
// build that declines yields a filter that always says maybe.
func (w Writer) Finish(buf []byte) []byte {
	data, ok := w.Build(buf)
	if !ok {
		return append(buf, unfiltered...)
	}
	return data
}

// A Decoder asks the filters of one family, with any parameters. It is safe for
// concurrent use.
type Decoder struct {
	name  string
	probe func(data []byte, h uint64) bool
}

// Decoders returns one for each family except "none".
func Decoders() []Decoder {
	var all []Decoder
	for _, family := range filterpolicy.Families() {
		if d, ok := newDecoder(family); ok {
			all = append(all, d)
		}
	}
	return all
}

func newDecoder(family string) (Decoder, bool) {
	probe, ok := filterpolicy.Probe(family)
	if !ok || family == none.Name {
		return Decoder{}, false
	}
	return Decoder{name: Prefix + family, probe: probe}, true
}

// Prefix stands before the names of this module's families in an engine's tables.
const Prefix = "siftkv."

// Name returns "siftkv." and the family's name: what an engine writes to its
// tables, and compares when it reads them.
func (d *Decoder) Name() string { return d.name }

// MayContain reports whether the table with this filter may contain the key. Bytes
// that are no filter answer true. It does not allocate.
func (d *Decoder) MayContain(filter, key []byte) bool {
	return d.probe(filter, filterpolicy.Hash(key))
}

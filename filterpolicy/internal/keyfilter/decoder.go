package keyfilter

import (
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/none"
)

// A Decoder asks the filters of one family, whatever their parameters. It is safe for
// concurrent use.
type Decoder struct {
	name  string
	probe func(data []byte, h uint64) bool
}

// Decoders returns one for each family but "none".
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

package sizing

import (
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// A Design is what distinguishes the families of a file's Bloom filters from each other. Such a
// filter has a number of bits per key, in an array of whole units; each key sets some bits.
type Design struct {
	Family   frame.Family
	UnitBits uint64 // the array is a whole number of units, a multiple of 8 bits each
	Counted  uint64 // what the footer counts of a unit: its bits, or 1 for the unit

	// Probes returns how many bits a key sets.
	Probes func(perKey spec.Bits) int
	// Fill sets the bits of some keys.
	Fill func(array []byte, hashes []uint64, probes int)
	// Rate returns the false-positive rate of keys in an array of that many units.
	Rate func(keys, units float64, probes int) float64
}

// Finish appends the filter of hashes to dst. ok is false if it would not fit the
// address space; dst is then returned as it was.
func (d *Design) Finish(dst []byte, hashes *hash64.List, perKey spec.Bits) (data []byte, ok bool) {
	probes, start := d.Probes(perKey), len(dst)
	footer := frame.Description{Keys: uint64(hashes.Len()), Params: uint32(probes)}
	if footer.Keys == 0 {
		return footer.Seal(dst, start, d.Family), true
	}
	units, ok := perKey.Units(hashes.Len(), d.UnitBits)
	if !ok {
		return dst, false
	}
	footer.Units = units * d.Counted
	dst = append(dst, make([]byte, units*d.UnitBits/8)...)
	for chunk := range hashes.Chunks() {
		d.Fill(dst[start:], chunk, probes)
	}
	return footer.Seal(dst, start, d.Family), true
}

// Expected returns the size, footer included, and the false-positive rate of a filter of that many distinct keys. The
// size is exact. A filter too large to build has no bits and says maybe to everything.
func (d *Design) Expected(perKey spec.Bits, keys int) (bitsPerKey, fpr float64) {
	units, ok := perKey.Units(keys, d.UnitBits)
	switch {
	case keys <= 0:
		return 0, 0
	case !ok:
		return 0, 1
	}
	n := float64(keys)
	return (float64(units*d.UnitBits) + 8*frame.FooterLen) / n, d.Rate(n, float64(units), d.Probes(perKey))
}

// Limit returns the false-positive rate of large filters. That of a smaller one is not
// above it, as its last unit is not full.
func (d *Design) Limit(perKey spec.Bits) float64 {
	const large = 1 << 30 // keys per thousandth of a bit, so that units come out even
	units := float64(perKey) * large / float64(d.UnitBits)
	return d.Rate(float64(spec.One)*large, units, d.Probes(perKey))
}

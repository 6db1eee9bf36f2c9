package fuse

import (
	"github.com/siftkv/siftkv/filterpolicy/internal/fingerprint"
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
)

// Expected returns the size and the false-positive rate of a filter of the given
// number of distinct keys. The size counts the footer; it is exact unless eight
// attempts at building fail. A filter too large to build has no bits and says maybe
// to everything.
func (p Policy) Expected(keys int) (bitsPerKey, fpr float64) {
	if keys <= 0 {
		return 0, 0
	}
	if uint64(keys) > fingerprint.MaxCells {
		return 0, 1
	}
	l := layoutFor(int(p.arity), uint64(keys), 0)
	cells, _ := l.Size()
	if !fingerprint.Fits(cells, uint64(p.bits)) {
		return 0, 1
	}
	size := fingerprint.Size(cells, uint64(p.bits)) + frame.FooterLen
	return 8 * float64(size) / float64(keys), fingerprint.Rate(p.bits)
}

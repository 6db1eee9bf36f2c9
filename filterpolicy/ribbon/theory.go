package ribbon

import (
	"math"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
)

// bumpedShare is the share of a layer's keys that go to the next: those for which
// there is no slot, and a few for which there would have been.
const bumpedShare = 0.0513

// Expected returns the size and the false-positive rate of a filter of the given
// number of distinct keys. The size counts the footer, and is within 1 % for
// 10 000 keys or more: how many keys are bumped depends on their hashes. A filter too large to build
// has no bits and says maybe to everything.
func (p Policy) Expected(keys int) (bitsPerKey, fpr float64) {
	switch {
	case keys <= 0:
		return 0, 0
	case uint64(keys) > min(maxKeys, math.MaxInt/64):
		return 0, 1
	}
	w, n, reached := widthOf(p.bits), float64(keys), 1.0
	size := uint64(frame.FooterLen)
	for layers := 0; ; layers++ {
		last := isLast(int(n), layers)
		s := w.shapeFor(uint64(n), last)
		words, thresholds := s.size(last)
		size += words + thresholds + entryLen
		if last {
			return 8 * float64(size) / float64(keys), fpr + reached*s.rate()
		}
		fpr += reached * (1 - bumpedShare) * s.rate()
		reached *= bumpedShare
		n = math.Ceil(n * bumpedShare)
	}
}

// rate is the false-positive rate of a layer: 2^-b where there are b columns, and
// half of it where there is one more.
func (s shape) rate() float64 {
	narrow := min(s.blocks-1, s.narrow) // no equation starts in the last block
	share := 1 - float64(narrow)/float64(s.blocks-1)
	return math.Exp2(-float64(s.columns)) * (1 - share/2)
}

package blockindex

import "math/bits"

// A guide says where the prefixes of one range begin, so that a search need not start
// from the middle of the index. Range b of a guide is the prefixes p with
//
//	(p - base) >> shift == b
//
// and starts[b] is the first entry of that range or a later one; the last element is the number of entries. With half
// as many ranges as entries, or a few more, a search among evenly spread prefixes ends after one load more and two or
// three steps. Where prefixes crowd, it saves less. It is the first level of a radix tree.
type guide struct {
	base   uint64
	shift  int
	starts []uint32
}

// A guide is worth its load for at least minGuided entries: fewer are in the processor's nearest cache.
const minGuided = 64

// Guided returns the index with a guide, which makes Find faster and takes 1 to 4
// bytes per entry of the Go heap. Building it takes O(n). The index itself is not changed.
func (x Index) Guided() Index {
	x.guide = guide{}
	if x.n < minGuided {
		return x
	}
	base := x.prefix(0)
	width := bits.Len64(x.prefix(x.n-1) - base)
	g := guide{base: base, shift: max(0, width-bits.Len(uint(x.n-1))+1)}
	ranges := g.of(x.prefix(x.n-1)) + 1
	g.starts = make([]uint32, 0, ranges+1)
	for i := range x.n {
		for b := g.of(x.prefix(i)); uint64(len(g.starts)) <= b; {
			g.starts = append(g.starts, uint32(i))
		}
	}
	g.starts = append(g.starts, uint32(x.n))
	x.guide = g
	return x
}

// of returns the range of a prefix that is not below base.
func (g *guide) of(p uint64) uint64 { return (p - g.base) >> g.shift }

// narrow returns lo and n such that the first entry with a prefix of at least p is one of
// the entries lo to lo+n. The last of these may be the one after the index.
func (g *guide) narrow(p uint64) (lo, n int) {
	if p < g.base {
		return 0, 0
	}
	b, ranges := g.of(p), len(g.starts)-1
	if b >= uint64(ranges) {
		return int(g.starts[ranges]), 0
	}
	lo = int(g.starts[b])
	return lo, int(g.starts[b+1]) - lo
}

package cutkeys

import "math/bits"

// contains reports whether the interval of a cut key meets [lo, hi); a nil hi is behind all.
//
// The first interval that does not end before lo is looked for. Either lo is in it, or all intervals
// before it end below lo and it begins above: then it is asked whether it begins below hi.
func (f *Filter) contains(lo, hi *bound) bool {
	i := f.find(lo)
	if i < 0 {
		return f.firstBelow(0, hi)
	}
	var s scan
	s.open(f, i)
	switch s.seek(lo) {
	case inside:
		return true
	case behind:
		return i+1 < f.len() && f.firstBelow(i+1, hi)
	}
	return s.beginsBelow(lo, hi)
}

// find returns the last group with a first interval that does not begin above lo, -1 if there is none.
func (f *Filter) find(lo *bound) int {
	base, n := 0, f.len()
	for n > 1 { // marks before base are below lo
		half := n / 2
		_, less := bits.Sub64(f.mark(base+half-1), lo.first, 0)
		base += half & -int(less)
		n -= half
	}
	if f.mark(base) < lo.first {
		base++
	}
	if base == f.len() || f.mark(base) != lo.first {
		return base - 1
	}
	return f.findEqual(lo, base)
}

// findEqual is find among the groups beginning at first that have the first 64 bits of lo as marks.
func (f *Filter) findEqual(lo *bound, first int) int {
	end := first + 1 // of those that begin with the mark
	for step := 1; end < f.len() && f.mark(end) == lo.first; step *= 2 {
		end = min(f.len(), end+step)
	}
	for first < end {
		middle := int(uint(first+end) / 2)
		if f.mark(middle) == lo.first && !f.firstAbove(middle, lo) {
			first = middle + 1
		} else {
			end = middle
		}
	}
	return first - 1
}

// firstAbove reports whether the interval of a group's first key begins above a bound that begins with the mark.
func (f *Filter) firstAbove(i int, b *bound) bool {
	var s scan
	s.open(f, i)
	same, above := s.compare(b, wordBits)
	return same < s.size && above
}

// firstBelow reports whether the interval of a group's first key begins below hi.
func (f *Filter) firstBelow(i int, hi *bound) bool {
	if hi == nil || f.mark(i) != hi.first {
		return hi == nil || f.mark(i) < hi.first
	}
	var s scan
	s.open(f, i)
	return s.tailBelow(hi, wordBits)
}

package order

import "iter"

// Union yields the values of two ascending sequences in ascending order; those of both
// come twice. Each function returns the next value of its sequence, false after
// the last.
func Union(a, b func() (value uint64, ok bool)) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		x, left := a()
		y, right := b()
		for left || right {
			if left && (!right || x <= y) {
				if !yield(x) {
					return
				}
				x, left = a()
				continue
			}
			if !yield(y) {
				return
			}
			y, right = b()
		}
	}
}

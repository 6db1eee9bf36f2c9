package sstable

import (
	"slices"

	"github.com/siftkv/siftkv/internal/base"
)

// Octiles say when the values of a file expire: the i-th (from 0) is a moment, in
// microseconds since 1970 UTC, at which about i+1 eighths of them have. All are zero in a
// file without such values, and in one of an earlier version of this package.
type Octiles = base.Octiles

// An expirySample collects moments of expiry: every value's at first, every second one's
// when there are too many, every fourth one's, and so on. So a file's writer holds 8 KiB at
// the most, and what it finds depends on nothing but the file's values and their order.
type expirySample struct {
	moments []uint64
	stride  int // one of so many is taken
	passed  int // since the last one
}

// sampledExpiries bounds a sample.
const sampledExpiries = 1024

func (s *expirySample) add(moment uint64) {
	if s.passed++; s.passed < s.stride {
		return
	}
	s.passed = 0
	if len(s.moments) == sampledExpiries {
		for i := range sampledExpiries / 2 {
			s.moments[i] = s.moments[2*i+1]
		}
		s.moments = s.moments[:sampledExpiries/2]
		s.stride = max(2*s.stride, 2)
	}
	s.moments = append(s.moments, moment)
}

// octiles returns those of the values that were added.
func (s *expirySample) octiles() (o Octiles) {
	if len(s.moments) == 0 {
		return o
	}
	sorted := slices.Sorted(slices.Values(s.moments))
	for i := range o {
		o[i] = sorted[((i+1)*len(sorted)+7)/8-1]
	}
	return o
}

package sstable

import (
	"encoding/binary"
	"slices"
)

// Octiles say when the values of a file expire: the i-th (from 0) is a moment, in
// microseconds since 1970 UTC, at which about i+1 eighths of them have. The last eighth is
// Properties.LastExpiry. All are zero in a file without such values, and in one of an
// earlier version of this package, which knew the latest expiry alone.
type Octiles [7]uint64

// Expired returns about how many of count values, of which the last expires at last, have
// expired at now. It takes an eighth for expired when all of it has: what it returns is
// never too large by more than the error of the sample.
func (o *Octiles) Expired(count, last, now uint64) uint64 {
	if last <= now {
		return count
	}
	for i := len(o); i > 0; i-- {
		if o[i-1] != 0 && o[i-1] <= now {
			return count / 8 * uint64(i)
		}
	}
	return 0
}

// append appends the octiles as uvarints: the first, and the differences of the others.
func (o *Octiles) append(dst []byte) []byte {
	before := uint64(0)
	for _, moment := range o {
		dst = binary.AppendUvarint(dst, moment-before)
		before = moment
	}
	return dst
}

// decode takes octiles off b, and reports whether they were there and nothing else.
func (o *Octiles) decode(b []byte) bool {
	moment := uint64(0)
	for i := range o {
		step, n := binary.Uvarint(b)
		if n <= 0 || moment+step < moment {
			return false
		}
		b = b[n:]
		moment += step
		o[i] = moment
	}
	return len(b) == 0
}

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

package sstable

import (
	"slices"
	"sort"

	"github.com/siftkv/siftkv/internal/base"
)

// Octiles say when the values of a file expire: the i-th (from 0) is a moment, in
// microseconds since 1970 UTC, at which about i+1 eighths of them have. All are zero in a
// file without such values, and in one of an earlier version of this package.
type Octiles = base.Octiles

// An expirySample collects moments of expiry, each with a weight: a file's writer holds 16 KiB at the most, and what it
// finds depends on nothing but the file's values and their order.
type expirySample struct{ base.Sample[expiry] }

type expiry struct{ moment, weight uint64 }

// sampledExpiries bounds a sample.
const sampledExpiries = 1024

func (s *expirySample) add(moment, weight uint64) {
	if s.Pick(sampledExpiries) {
		s.Taken = append(s.Taken, expiry{moment, weight})
	}
}

// octiles returns those of the values that were added: the i-th is the moment at which values of i+1 eighths of all
// weight have expired.
func (s *expirySample) octiles() (o Octiles) {
	if len(s.Taken) == 0 {
		return o
	}
	sorted := slices.Clone(s.Taken)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i].moment < sorted[j].moment })
	all, passed, next := 0.0, 0.0, 0
	for _, e := range sorted {
		all += float64(e.weight)
	}
	for _, e := range sorted {
		for passed += float64(e.weight); next < len(o) && passed*8 >= all*float64(next+1); next++ {
			o[next] = e.moment
		}
	}
	return o
}

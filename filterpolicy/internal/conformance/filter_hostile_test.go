package conformance

import (
	"testing"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/hostile"
)

// A filter is a view: decoding and asking it take no memory that grows with the bytes.
// What two filters are merged into does.
var (
	viewBound  = hostile.Bound{Fixed: 8 << 10}
	mergeBound = hostile.Bound{PerByte: 32, Fixed: 64 << 10}
)

// hostileRounds is the number of random changes of each filter.
const hostileRounds = 300

// Bounded changes filters as an adversary would, with their checksums right again, and
// holds what it takes to decode and to ask each against a bound.
func Bounded(t *testing.T, specs ...string) {
	t.Helper()
	decoded := 0
	for _, spec := range specs {
		v := victimOf(t, spec)
		for _, n := range []int{0, 1, 60, 900} {
			for mutant := range hostile.Mutants(Build(t, spec, Good(1), n), Share(hostileRounds)) {
				if v.bounded(t, Reseal(mutant)) {
					decoded++
				}
			}
		}
	}
	if decoded == 0 {
		t.Fatal("no change was taken for a filter: the mutants are too rough to find anything")
	}
}

// bounded decodes data and asks the filter, within the bound, and reports whether it is
// one.
func (v victim) bounded(tb testing.TB, data []byte) bool {
	tb.Helper()
	var err error
	viewBound.Require(tb, len(data), func() {
		var f filterpolicy.Filter
		if f, err = filterpolicy.Decode(v.name, data); err == nil {
			touch(func(_ []byte, h uint64) bool { return f.MayContainHash(h) }, nil)
		}
		touch(v.probe, data)
	})
	return err == nil
}

// Hostile changes filters as an adversary would, and merges those that are decoded with
// the one that they were made of, both ways.
func (m Mergeable[F]) Hostile(t *testing.T, specs ...string) {
	t.Helper()
	merged := 0
	for _, spec := range specs {
		for _, n := range []int{1, 60, 900} {
			sound := Build(t, spec, Good(1), n)
			for mutant := range hostile.Mutants(sound, Share(hostileRounds)) {
				if m.bounded(t, sound, mutant) && m.bounded(t, mutant, sound) {
					merged++
				}
			}
		}
	}
	if merged == 0 {
		t.Fatal("no change could be merged: the mutants are too rough to find anything")
	}
}

// bounded merges two filters, if both are decoded, within the bound, and reports whether
// they could be.
func (m Mergeable[F]) bounded(tb testing.TB, x, y []byte) bool {
	tb.Helper()
	a, errA := m.Decode(Reseal(x))
	b, errB := m.Decode(Reseal(y))
	if errA != nil || errB != nil {
		return false
	}
	var err error
	mergeBound.Require(tb, len(x)+len(y), func() { _, err = m.Merge(nil, a, b) })
	return err == nil
}

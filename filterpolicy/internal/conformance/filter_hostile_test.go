package conformance

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

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
			for mutant := range hostile.Mutants(Build(t, spec, Good(1), n), hostileRounds) {
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

// Of what is said behind the inner filter all is taken as it is: its family, the length of that name, the salt. What
// is within is changed as that of other families is, and nested as deep as its bytes go.
func TestHostileSaltedFilters(t *testing.T) {
	decoded := 0
	bounded := func(data []byte) {
		viewBound.Require(t, len(data), func() {
			f, err := filterpolicy.Decode(filterpolicy.SaltedName, data)
			if err == nil {
				decoded++
				touch(func(_ []byte, h uint64) bool { return f.MayContainHash(h) }, nil)
			}
		})
	}
	eachFilterFamily(t, func(t *testing.T, family filterFamily) {
		spec := family.hostile[0]
		salted := Build(t, filterpolicy.SaltedName+":"+spec, Good(1), 60)
		for mutant := range hostile.Mutants(salted, hostileRounds) {
			bounded(mutant)
		}
		inner := Build(t, spec, Good(1), 60)
		layer := salted[len(salted)-len(Policy(t, spec).Name())-len("\x07")-len("the salt"):]
		for mutant := range hostile.Mutants(inner, hostileRounds) {
			bounded(append(Reseal(mutant), layer...))
		}
	})
	require.NotZero(t, decoded, "no change was taken for a filter: the mutants are too rough to find anything")
	layer := append([]byte(filterpolicy.SaltedName+"\x06"), 1, 0, 0, 0, 0, 0, 0, 0)
	nested := append(Build(t, "salted:blocked:10", Good(1), 60), bytes.Repeat(layer, 1<<16)...)
	bounded(nested)
	_, err := filterpolicy.Decode(filterpolicy.SaltedName, nested)
	require.ErrorIs(t, err, filterpolicy.ErrCorrupt)
}

// Hostile changes filters as an adversary would, and merges those that are decoded with
// the one that they were made of, both ways.
func (m Mergeable[F]) Hostile(t *testing.T, specs ...string) {
	t.Helper()
	merged := 0
	for _, spec := range specs {
		for _, n := range []int{1, 60, 900} {
			sound := Build(t, spec, Good(1), n)
			for mutant := range hostile.Mutants(sound, hostileRounds) {
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

package conformance

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A Set is what the sets of every family can do.
type Set interface {
	Codec
	Contains(key []byte) bool
	ContainsHash(h uint64) bool
	Len() int
	Cap() int
	Size() int
	FalsePositiveRate() float64
	Reset()
}

// An Adder is a set that takes any key.
type Adder interface {
	Set
	Add(key []byte)
	AddHash(h uint64)
	AddNew(key []byte) bool
	AddNewHash(h uint64) bool
}

// A Refuser is a set that takes keys as long as it has room.
type Refuser interface {
	Set
	Add(key []byte) error
	AddHash(h uint64) error
	AddNew(key []byte) (added bool, err error)
	AddNewHash(h uint64) (added bool, err error)
}

// A Remover is a set that gives keys back.
type Remover interface {
	Set
	Remove(key []byte) bool
	RemoveHash(h uint64) bool
	Count(key []byte) int
	CountHash(h uint64) int
}

// A Filled set is of bits or counters, and tells the share that is in use.
type Filled interface {
	Set
	FillRatio() float64
}

// A Loaded set is of slots, and tells the share that is in use.
type Loaded interface {
	Set
	LoadFactor() float64
}

// A Family makes sets of one kind, P: an Adder or a Refuser.
type Family[P Set] struct {
	New  func(tb testing.TB, n int, rate float64) P // an empty one
	Zero func() P
}

// Of returns the family of a constructor.
func Of[S any, P interface {
	*S
	Set
}](construct func(n int, rate float64) (P, error)) Family[P] {
	return Family[P]{
		New: func(tb testing.TB, n int, rate float64) P {
			tb.Helper()
			s, err := construct(n, rate)
			require.NoError(tb, err)
			return s
		},
		Zero: func() P { return new(S) },
	}
}

// With returns the family of a constructor with options.
func With[S, O any, P interface {
	*S
	Set
}](construct func(n int, rate float64, o *O) (P, error), o *O) Family[P] {
	return Of(func(n int, rate float64) (P, error) { return construct(n, rate, o) })
}

// Any forgets the kind of a family's sets.
func (f Family[P]) Any() Family[Set] {
	return Family[Set]{
		New:  func(tb testing.TB, n int, rate float64) Set { tb.Helper(); return f.New(tb, n, rate) },
		Zero: func() Set { return f.Zero() },
	}
}

// Filled returns a set of the n hashes of Fill that was made for as many, or for
// one if there are none.
func (f Family[P]) Filled(tb testing.TB, n int, rate float64) P {
	tb.Helper()
	return Fill(tb, f.New(tb, max(1, n), rate), n)
}

// TB is what a test, a benchmark, a fuzz target and a property have in common.
type TB interface {
	require.TestingT
	Helper()
}

// Add adds a hash to a set of either kind.
func Add(s Set, h uint64) error {
	switch s := s.(type) {
	case Adder:
		s.AddHash(h)
		return nil
	case Refuser:
		return s.AddHash(h)
	}
	return fmt.Errorf("%T takes no keys", s)
}

// Fill adds n well-mixed hashes, Hash(1, 0) to Hash(1, n-1), which the set must
// take, and returns the set.
func Fill[S Set](tb TB, s S, n int) S {
	tb.Helper()
	for i := range uint64(n) {
		if err := Add(s, Hash(1, i)); err != nil {
			require.NoError(tb, err, "key %d of %d", i, n)
		}
	}
	return s
}

// Holds checks that a set has the n hashes of Fill.
func Holds(tb TB, s Set, n int) {
	tb.Helper()
	for i := range uint64(n) {
		if !s.ContainsHash(Hash(1, i)) {
			require.Fail(tb, "false negative", "key %d of %d", i, n)
		}
	}
}

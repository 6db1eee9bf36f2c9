package conformance

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// SetSuite runs everything that holds for the sets of every family.
func SetSuite[P Set](t *testing.T, f Family[P]) {
	t.Helper()
	for _, part := range []struct {
		name string
		run  func(t *testing.T, f Family[Set])
	}{
		{"keys", setKeys},
		{"rates", setRates},
		{"unmixed hashes", unmixed},
		{"reset", resetSet},
		{"bytes", encodings},
		{"zero set", zeroSet},
		{"no allocations", allocations},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, f.Any()) })
	}
}

// setKeys checks that a key is its hash, and how often it is there.
func setKeys(t *testing.T, f Family[Set]) {
	s := f.New(t, 100, 1e-4)
	key := []byte("abc")
	require.False(t, s.Contains(key))
	require.True(t, addNew(t, s, key))
	require.True(t, s.Contains(key))
	require.True(t, s.ContainsHash(0x44bc2cf5ad770999), "xxhash64")
	require.False(t, s.Contains([]byte("abd")))
	require.False(t, addNew(t, s, key))
	require.True(t, addNew(t, s, nil))
	require.Equal(t, 2, s.Len())
	r, ok := s.(Remover)
	if !ok {
		return
	}
	require.Equal(t, 1, r.Count(key))
	require.NoError(t, Add(s, 0x44bc2cf5ad770999))
	require.Equal(t, 2, r.Count(key))
	require.Equal(t, 3, r.Len())
	for left := 1; left >= 0; left-- {
		require.True(t, r.Remove(key))
		require.Equal(t, left, r.Count(key))
		require.Equal(t, left != 0, r.Contains(key))
	}
	require.False(t, r.Remove(key))
	require.Equal(t, 1, r.Len())
}

func addNew(t *testing.T, s Set, key []byte) bool {
	t.Helper()
	if a, ok := s.(Adder); ok {
		return a.AddNew(key)
	}
	added, err := s.(Refuser).AddNew(key)
	require.NoError(t, err)
	return added
}

// scatter is how far a set's rate may be above the promised one: sets of few
// keys differ by chance.
func scatter(n int) float64 { return 1.02 + 3/math.Sqrt(float64(n)) }

// setRates checks that a set has the keys that it was made for, keeps the promised
// rate with them, and knows its rate.
func setRates(t *testing.T, f Family[Set]) {
	for _, rate := range []float64{0.1, 0.01, 0.001} {
		n := Share(50_000)
		s := f.Filled(t, n, rate)
		Holds(t, s, n)
		require.GreaterOrEqual(t, s.Cap(), s.Len())
		if _, ok := s.(Remover); ok {
			require.Equal(t, n, s.Len())
		} else {
			require.InEpsilon(t, n, s.Len(), 0.7*rate+0.002, "false positives do not count")
		}
		promised := scatter(n) * rate
		got, sigma := SetRate(s.ContainsHash, Share(400_000), promised)
		require.LessOrEqual(t, got, promised+4*sigma)
		require.InDelta(t, s.FalsePositiveRate(), got, 0.03*rate+4*sigma)
	}
}

// unmixed checks that numbers which nobody hashed are as good as hashes.
func unmixed(t *testing.T, f Family[Set]) {
	const rate = 0.01
	n := Share(20_000)
	for name, at := range UnmixedNumbers {
		s := f.New(t, n, rate)
		for i := range uint64(n) {
			require.NoError(t, Add(s, at(i)))
		}
		absent := func(h uint64) uint64 { return at(uint64(n) + h) }
		got, sigma := rateOf(s.ContainsHash, absent, Share(100_000), rate)
		require.LessOrEqual(t, got, scatter(n)*rate+4*sigma, name)
	}
}

// resetSet checks that a set without keys has nothing, and that a reset one is as it
// was when it was new.
func resetSet(t *testing.T, f Family[Set]) {
	s := f.New(t, 1000, 0.01)
	empty := Bytes(t, s)
	require.Zero(t, s.Len())
	require.Zero(t, Fullness(s))
	require.Zero(t, s.FalsePositiveRate())
	Fill(t, s, 1000)
	require.Positive(t, Fullness(s))
	require.NotEqual(t, empty, Bytes(t, s))
	s.Reset()
	require.Equal(t, empty, Bytes(t, s))
	for i := range uint64(1000) {
		require.False(t, s.ContainsHash(Hash(1, i)))
	}
}

// Fullness returns the share of a set that is in use, by whichever name.
func Fullness(s Set) float64 {
	if s, ok := s.(Filled); ok {
		return s.FillRatio()
	}
	return s.(Loaded).LoadFactor()
}

func encodings(t *testing.T, f Family[Set]) {
	for _, n := range []int{0, 1, 100, Share(20_000)} {
		RoundTrip(t, f.Filled(t, n, 0.01), f.Zero)
	}
	DamageSet(t, f.Filled(t, 10, 0.01), f.Zero)
}

// zeroSet checks that a zero set has nothing, takes nothing silently, and is not
// written.
func zeroSet(t *testing.T, f Family[Set]) {
	Zero(t, f.Zero)
	s := f.Zero()
	switch s := s.(type) {
	case Adder:
		require.Panics(t, func() { s.AddHash(1) })
		require.Panics(t, func() { s.Add(nil) })
	case Refuser:
		require.Error(t, s.AddHash(1))
		require.Error(t, s.Add(nil))
	}
	if s, ok := s.(Remover); ok {
		require.False(t, s.RemoveHash(1))
		require.Zero(t, s.CountHash(1))
	}
}

// allocations checks that questions allocate nothing, and neither do adding keys
// that are there and, where adding cannot grow anything, new ones.
func allocations(t *testing.T, f Family[Set]) {
	s := f.Filled(t, 500, 0.01)
	key, i := []byte("key"), uint64(0)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		s.Contains(key)
		s.ContainsHash(i)
		if s, ok := s.(Adder); ok {
			s.Add(key)
			s.AddNew(key)
		}
		i++
	}))
}

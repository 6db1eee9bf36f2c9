package bloom_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/bloom"
	"github.com/siftkv/siftkv/filterpolicy/internal/settest"
)

func newSet(tb testing.TB, n int, rate float64) *bloom.Set {
	tb.Helper()
	s, err := bloom.New(n, rate)
	require.NoError(tb, err)
	return s
}

// filled returns a set of n hashes with the salt 1.
func filled(tb testing.TB, n int, rate float64) *bloom.Set {
	tb.Helper()
	s := newSet(tb, max(1, n), rate)
	for i := range uint64(n) {
		s.AddHash(settest.Hash(1, i))
	}
	return s
}

func zeroSet() settest.Codec { return &bloom.Set{} }

func TestSetRefusesBadSizes(t *testing.T) {
	for _, n := range []int{-1, 0, 1<<40 + 1} {
		s, err := bloom.New(n, 0.01)
		require.Nil(t, s)
		require.ErrorContains(t, err, "capacity must be from 1 to 1099511627776 keys")
		_, err = bloom.NewConcurrent(n, 0.01)
		require.Error(t, err)
	}
	for _, rate := range []float64{0, 1, -1, 10, 1e-13, math.NaN()} {
		_, err := bloom.New(1, rate)
		require.ErrorContains(t, err, "false-positive rate must be from 1e-12 to 0.9")
		_, err = bloom.NewConcurrent(1, rate)
		require.Error(t, err)
	}
}

func TestSetHoldsItsKeysAndItsRate(t *testing.T) {
	for _, rate := range []float64{0.5, 0.1, 0.01, 0.001} {
		for _, n := range []int{1, 2, 10, 100, 1000, settest.Share(300_000)} {
			s := filled(t, n, rate)
			for i := range uint64(n) {
				require.True(t, s.ContainsHash(settest.Hash(1, i)))
			}
			require.InEpsilon(t, n, s.Len(), 0.7*rate+2/float64(n))
			require.Equal(t, n, s.Cap())
			if n < 1000 {
				continue // one small set may be worse than the mean; see below
			}
			settest.KeepsPromise(t, s.ContainsHash, 500_000, 1.02*rate)
			require.InEpsilon(t, rate, s.FalsePositiveRate(), 0.1)
		}
	}
}

// The promise is one of the mean, which small sets scatter around. Double hashing would
// show in them, and at low rates: see package mix.
func TestMeanRateOfSmallSets(t *testing.T) {
	for _, rate := range []float64{0.01, 0.0001} {
		for _, n := range []int{1, 3, 10, 30, 100, 300} {
			settest.KeepsPromiseOnAverage(t, n, settest.Share(500), rate, func() settest.Hashes { return newSet(t, n, rate) })
		}
	}
}

func TestSetTakesUnmixedHashes(t *testing.T) {
	n := settest.Share(100_000)
	for name, at := range settest.Unmixed {
		s := newSet(t, n, 0.01)
		for i := range uint64(n) {
			s.AddHash(at(i))
		}
		next := uint64(n)
		positives := 0
		for range 200_000 {
			if s.ContainsHash(at(next)) {
				positives++
			}
			next++
		}
		require.LessOrEqual(t, positives, 2300, name)
	}
}

func TestSetOfKeysIsSetOfTheirHashes(t *testing.T) {
	s := newSet(t, 10, 0.001)
	s.Add([]byte("abc"))
	require.True(t, s.Contains([]byte("abc")))
	require.True(t, s.ContainsHash(0x44bc2cf5ad770999))
	require.False(t, s.Contains([]byte("abd")))
	require.False(t, s.AddNew([]byte("abc")))
	require.True(t, s.AddNew(nil))
	require.Equal(t, 2, s.Len())
}

func TestSetCountsNewKeysOnce(t *testing.T) {
	s := newSet(t, 1000, 1e-9)
	for range 5 {
		for i := range uint64(1000) {
			s.AddHash(i)
		}
	}
	require.Equal(t, 1000, s.Len())
}

func TestSetStateAndReset(t *testing.T) {
	s := newSet(t, 1000, 0.01)
	empty := settest.Bytes(t, s)
	require.Zero(t, s.FillRatio())
	require.Zero(t, s.FalsePositiveRate())
	require.InDelta(t, 9600, 8*s.Size(), 150)
	for i := range uint64(1000) {
		s.AddHash(settest.Hash(1, i))
	}
	before := settest.Bytes(t, s)
	require.InDelta(t, 0.5, s.FillRatio(), 0.03)
	require.InDelta(t, 0.01, s.FalsePositiveRate(), 0.002)
	require.Equal(t, before, settest.Bytes(t, s), "a question changed the state")
	s.Reset()
	require.Equal(t, empty, settest.Bytes(t, s))
	for i := range uint64(1000) {
		require.False(t, s.ContainsHash(settest.Hash(1, i)))
	}
}

func TestOverfullSet(t *testing.T) {
	s := newSet(t, 10, 0.01)
	for i := range uint64(10_000) {
		s.AddHash(i)
	}
	require.InDelta(t, 1, s.FalsePositiveRate(), 1e-9)
	require.True(t, s.ContainsHash(1<<60), "a full set has everything")
}

func TestMerge(t *testing.T) {
	a, b, both := newSet(t, 2000, 0.01), newSet(t, 2000, 0.01), newSet(t, 2000, 0.01)
	for i := range uint64(1500) {
		h := settest.Hash(1, i)
		both.AddHash(h)
		if i < 1000 {
			a.AddHash(h)
		}
		if i >= 500 {
			b.AddHash(h)
		}
	}
	require.NoError(t, a.Merge(b))
	require.InEpsilon(t, both.Len(), a.Len(), 0.02)
	require.Equal(t, both.FillRatio(), a.FillRatio())
	for i := range uint64(1500) {
		require.True(t, a.ContainsHash(settest.Hash(1, i)))
	}
	require.ErrorContains(t, a.Merge(newSet(t, 3000, 0.01)), "cannot be merged: make both for the same capacity and rate")
	require.ErrorContains(t, a.Merge(&bloom.Set{}), "cannot be merged")
}

func TestZeroSet(t *testing.T) {
	var s bloom.Set
	require.False(t, s.ContainsHash(1))
	require.Zero(t, s.Len()+s.Cap()+s.Size())
	require.Zero(t, s.FillRatio()+s.FalsePositiveRate())
	require.NoError(t, s.Merge(&bloom.Set{}))
	require.Panics(t, func() { s.AddHash(1) })
	settest.Zero(t, zeroSet)
}

func TestSetBytes(t *testing.T) {
	for _, n := range []int{0, 1, 100, 100_000} {
		settest.RoundTrip(t, filled(t, n, 0.01), zeroSet)
	}
	settest.Damage(t, filled(t, 20, 0.01), zeroSet)
	settest.Golden(t, "set.golden", filled(t, 20, 0.01))
	settest.Golden(t, "set-empty.golden", filled(t, 0, 1e-6))
}

func TestForgedSetsAreRefused(t *testing.T) {
	data := settest.Bytes(t, filled(t, 20, 0.01))
	for _, c := range []struct {
		at   int
		to   byte
		want string
	}{
		{7, 0xff, "bloom set of "},
		{8, 0, "made for 0"},
		{14, 1, "made for "},
		{16, 0, "with 0 probes"},
		{16, 45, "with 45 probes"},
		{23, 1, "probes cannot be"},
	} {
		for _, zero := range []settest.Codec{&bloom.Set{}, &bloom.ConcurrentSet{}} {
			require.ErrorContains(t, zero.UnmarshalBinary(settest.Forge(data, c.at, c.to)), c.want)
		}
	}
	later := append([]byte(nil), data...)
	later[5] = 2
	require.ErrorContains(t, zeroSet().UnmarshalBinary(settest.Reseal(later)), "version is 2; this program reads version 1")
}

func FuzzSet(f *testing.F) {
	settest.Fuzz(f, func() *bloom.Set { return &bloom.Set{} }, func(tb testing.TB, s *bloom.Set) {
		tb.Helper()
		for i := range uint64(4) {
			s.ContainsHash(i)
			s.AddHash(settest.Hash(1, i))
			require.True(tb, s.ContainsHash(settest.Hash(1, i)))
		}
		require.True(tb, s.FalsePositiveRate() > 0 && s.FalsePositiveRate() <= 1)
	}, settest.Bytes(f, filled(f, 20, 0.01)), settest.Bytes(f, filled(f, 0, 0.5)))
}

func TestSetAllocatesNothing(t *testing.T) {
	s, c := newSet(t, 1000, 0.01), newConcurrent(t, 1000, 0.01)
	key := []byte("key")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		s.Add(key)
		s.Contains(key)
		c.Add(key)
		c.Contains(key)
	}))
}

func ExampleSet() {
	seen, err := bloom.New(1_000_000, 0.01) // a million keys, 1 % false positives
	if err != nil {
		fmt.Println(err)
		return
	}
	seen.Add([]byte("apple"))
	fmt.Println(seen.Contains([]byte("apple")), seen.Contains([]byte("pear")))

	// De-duplication takes one pass.
	for _, word := range []string{"apple", "plum", "plum"} {
		if seen.AddNew([]byte(word)) {
			fmt.Println("new:", word)
		}
	}
	fmt.Printf("%d keys, %.1f bits for each of %d\n", seen.Len(), float64(8*seen.Size())/float64(seen.Cap()), seen.Cap())
	// Output:
	// true false
	// new: plum
	// 2 keys, 9.6 bits for each of 1000000
}

package bloom_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/bloom"
	"github.com/siftkv/siftkv/filterpolicy/internal/settest"
)

var family = settest.Of(bloom.New)

func TestSet(t *testing.T) { settest.Suite(t, family) }

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

// The promise is one of the mean, which small sets scatter around. Double hashing would
// show in them, and at low rates: see package mix.
func TestMeanRateOfSmallSets(t *testing.T) {
	for _, rate := range []float64{0.01, 0.0001} {
		for _, n := range []int{1, 3, 10, 30, 100, 300} {
			settest.KeepsPromiseOnAverage(t, family, n, settest.Share(500), rate, rate)
		}
	}
}

func TestSetIsHalfFullAtCapacity(t *testing.T) {
	s := family.Filled(t, 1000, 0.01)
	require.Equal(t, 1000, s.Cap())
	require.InDelta(t, 9600, 8*s.Size(), 150)
	require.InDelta(t, 0.5, s.FillRatio(), 0.03)
}

func TestSetCountsNewKeysOnce(t *testing.T) {
	s := family.New(t, 1000, 1e-9)
	for range 5 {
		for i := range uint64(1000) {
			s.AddHash(i)
		}
	}
	require.Equal(t, 1000, s.Len())
}

func TestOverfullSet(t *testing.T) {
	s := family.New(t, 10, 0.01)
	for i := range uint64(10_000) {
		s.AddHash(i)
	}
	require.InDelta(t, 1, s.FalsePositiveRate(), 1e-9)
	require.True(t, s.ContainsHash(1<<60), "a full set has everything")
}

func TestMerge(t *testing.T) {
	a, b, both := family.New(t, 2000, 0.01), family.New(t, 2000, 0.01), family.New(t, 2000, 0.01)
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
	require.ErrorContains(t, a.Merge(family.New(t, 3000, 0.01)),
		"cannot be merged: make both for the same capacity and rate")
	require.ErrorContains(t, a.Merge(&bloom.Set{}), "cannot be merged")
	require.NoError(t, new(bloom.Set).Merge(&bloom.Set{}))
}

func TestSetBytes(t *testing.T) {
	settest.RoundTrip(t, family.Filled(t, 100_000, 0.01), family.Zero)
	settest.Golden(t, "set.golden", family.Filled(t, 20, 0.01))
	settest.Golden(t, "set-empty.golden", family.Filled(t, 0, 1e-6))
}

func TestForgedSetsAreRefused(t *testing.T) {
	data := settest.Bytes(t, family.Filled(t, 20, 0.01))
	for _, zero := range []func() settest.Set{family.Any().Zero, concurrent.Any().Zero} {
		settest.Forgeries(t, data, zero, []settest.Forgery{
			{At: 7, To: 0xff, Want: "bloom set of "},
			{At: 8, To: 0, Want: "made for 0"},
			{At: 14, To: 1, Want: "made for "},
			{At: 16, To: 0, Want: "with 0 probes"},
			{At: 16, To: 45, Want: "with 45 probes"},
			{At: 23, To: 1, Want: "probes cannot be"},
		}...)
	}
}

func TestHostileSets(t *testing.T) {
	seeds := [][]byte{settest.Bytes(t, family.Filled(t, 20, 0.01)), settest.Bytes(t, family.Filled(t, 1, 0.5))}
	for _, zero := range []func() settest.Set{family.Any().Zero, concurrent.Any().Zero} {
		settest.Hostile(t, zero, 0, seeds...)
	}
}

func FuzzSet(f *testing.F) {
	seeds := [][]byte{settest.Bytes(f, family.Filled(f, 20, 0.01)), settest.Bytes(f, family.Filled(f, 0, 0.5))}
	settest.Fuzz(f, family.Any().Zero, settest.Use, seeds)
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
	fmt.Printf("%d keys, %.1f bits for each of %d\n", seen.Len(), float64(8*seen.Size())/float64(seen.Cap()),
		seen.Cap())
	// Output:
	// true false
	// new: plum
	// 2 keys, 9.6 bits for each of 1000000
}

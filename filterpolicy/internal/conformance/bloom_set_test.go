package conformance

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/bloom"
)

var bloomFamily = Of(bloom.New)

func TestBloomSet(t *testing.T) { SetSuite(t, bloomFamily) }

func TestBloomSetRefusesBadSizes(t *testing.T) {
	for _, n := range []int64{-1, 0, 1<<40 + 1} {
		if int64(int(n)) != n {
			continue // an int of 32 bits cannot be so large
		}
		s, err := bloom.New(int(n), 0.01)
		require.Nil(t, s)
		require.ErrorContains(t, err, "capacity must be from 1 to 1099511627776 keys")
		_, err = bloom.NewConcurrent(int(n), 0.01)
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
// show in them, and at low rates: see hash64.Point.
func TestBloomMeanRateOfSmallSets(t *testing.T) {
	for _, rate := range []float64{0.01, 0.0001} {
		for _, n := range []int{1, 3, 10, 30, 100, 300} {
			KeepsPromiseOnAverage(t, bloomFamily, n, Share(500), rate, rate)
		}
	}
}

func TestBloomSetIsHalfFullAtCapacity(t *testing.T) {
	s := bloomFamily.Filled(t, 1000, 0.01)
	require.Equal(t, 1000, s.Cap())
	require.InDelta(t, 9600, 8*s.Size(), 150)
	require.InDelta(t, 0.5, s.FillRatio(), 0.03)
}

func TestBloomSetCountsNewKeysOnce(t *testing.T) {
	s := bloomFamily.New(t, 1000, 1e-9)
	for range 5 {
		for i := range uint64(1000) {
			s.AddHash(i)
		}
	}
	require.Equal(t, 1000, s.Len())
}

func TestBloomOverfullSet(t *testing.T) {
	s := bloomFamily.New(t, 10, 0.01)
	for i := range uint64(10_000) {
		s.AddHash(i)
	}
	require.InDelta(t, 1, s.FalsePositiveRate(), 1e-9)
	require.True(t, s.ContainsHash(1<<60), "a full set has everything")
}

func TestBloomMerge(t *testing.T) {
	a, b, both := bloomFamily.New(t, 2000, 0.01), bloomFamily.New(t, 2000, 0.01), bloomFamily.New(t, 2000, 0.01)
	for i := range uint64(1500) {
		h := Hash(1, i)
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
		require.True(t, a.ContainsHash(Hash(1, i)))
	}
	require.ErrorContains(t, a.Merge(bloomFamily.New(t, 3000, 0.01)),
		"cannot be merged: make both for the same capacity and rate")
	require.ErrorContains(t, a.Merge(&bloom.Set{}), "cannot be merged")
	require.NoError(t, new(bloom.Set).Merge(&bloom.Set{}))
}

func TestBloomSetGoldenBytes(t *testing.T) {
	RoundTrip(t, bloomFamily.Filled(t, 100_000, 0.01), bloomFamily.Zero)
	GoldenSet(t, "bloom/set.golden", bloomFamily.Filled(t, 20, 0.01))
	GoldenSet(t, "bloom/set-empty.golden", bloomFamily.Filled(t, 0, 1e-6))
}

func TestBloomForgedSetsAreRefused(t *testing.T) {
	data := Bytes(t, bloomFamily.Filled(t, 20, 0.01))
	for _, zero := range []func() Set{bloomFamily.Any().Zero, bloomConcurrent.Any().Zero} {
		Forgeries(t, data, zero, []SetForgery{
			{At: 7, To: 0xff, Want: "bloom set of "},
			{At: 8, To: 0, Want: "made for 0"},
			{At: 14, To: 1, Want: "made for "},
			{At: 16, To: 0, Want: "with 0 probes"},
			{At: 16, To: 45, Want: "with 45 probes"},
			{At: 23, To: 1, Want: "probes cannot be"},
		}...)
	}
}

func TestBloomHostileSets(t *testing.T) {
	seeds := [][]byte{Bytes(t, bloomFamily.Filled(t, 20, 0.01)), Bytes(t, bloomFamily.Filled(t, 1, 0.5))}
	for _, zero := range []func() Set{bloomFamily.Any().Zero, bloomConcurrent.Any().Zero} {
		HostileSets(t, zero, 0, seeds...)
	}
}

func FuzzBloomSet(f *testing.F) {
	seeds := [][]byte{Bytes(f, bloomFamily.Filled(f, 20, 0.01)), Bytes(f, bloomFamily.Filled(f, 0, 0.5))}
	fuzzSet(f, bloomFamily.Any().Zero, Use, seeds)
}

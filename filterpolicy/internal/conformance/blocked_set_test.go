package conformance

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

var blockedFamily = Of(blocked.New)

func TestBlockedSet(t *testing.T) { SetSuite(t, blockedFamily) }

func BenchmarkBlockedSet(b *testing.B) {
	benchmarkSets(b, "set", blockedFamily, 100_000, 0.01)
	benchmarkSets(b, "set", blockedFamily, 1_000_000, 0.01)
}

func TestBlockedNewRefuses(t *testing.T) {
	_, err := blocked.New(0, 0.01)
	require.ErrorContains(t, err, "capacity must be from 1 to ")
	_, err = blocked.New(1000, 1)
	require.ErrorContains(t, err, "false-positive rate must be from ")
	_, err = blocked.New(1_000_000, 1e-9)
	require.ErrorContains(t, err, "a blocked set of 1000000 keys has no rate of 1e-09 within 64 bits per key: "+
		"take a bloom set")
	_, err = blocked.BitsFor(1_000_000, 1e-9)
	require.Error(t, err)
}

func TestBlockedBitsPerKey(t *testing.T) {
	for rate, keyBits := range map[float64]float64{0.5: 1.6, 0.1: 5, 0.01: 10, 0.001: 15.8, 1e-6: 45} {
		n := Share(200_000)
		s := blockedFamily.Filled(t, n, rate)
		require.LessOrEqual(t, 8*float64(s.Size()), keyBits*float64(n)+512, "rate %g", rate)
		require.Equal(t, n, s.Cap())
		KeepsPromise(t, s.ContainsHash, 500_000, 1.02*rate)
	}
}

func TestBlockedKeysThatAreThereLeaveNoTrace(t *testing.T) {
	s := blockedFamily.Filled(t, 5000, 0.01)
	before := Bytes(t, s)
	for i := range uint64(5000) {
		require.False(t, s.AddNewHash(Hash(1, i)))
	}
	require.Equal(t, before, Bytes(t, s))
}

func TestBlockedMeanRateOfSmallSets(t *testing.T) {
	for _, n := range []int{1, 10, 52, 100, 1000} {
		KeepsPromiseOnAverage(t, blockedFamily, n, Share(300), 0.01, 0.0102)
	}
}

// Sets of few lines scatter; many of them show what the mean is.
func TestBlockedSetTakesUnmixedHashes(t *testing.T) {
	for name, at := range UnmixedNumbers {
		for _, n := range []uint64{100, 400, 1600, 12800} {
			positives, sets, probes := 0, uint64(max(10, Share(40))), uint64(max(2000, Share(10_000)))
			for salt := range sets {
				s := blockedFamily.New(t, int(n), 0.01)
				for i := range n {
					s.AddHash(at(salt<<20 + i))
				}
				for i := range probes {
					if s.ContainsHash(at(salt<<20 + n + i)) {
						positives++
					}
				}
			}
			sigma := math.Sqrt(0.01 / float64(sets*probes))
			require.LessOrEqual(t, float64(positives)/float64(sets*probes), 0.0109+4*sigma, "%s, %d keys", name, n)
		}
	}
}

// A set has the bits that a file's filter of the same shape has for the mixed hashes.
func TestBlockedSetAnswersAsAFilterDoes(t *testing.T) {
	keyBits, err := blocked.BitsFor(1000, 0.01)
	require.NoError(t, err)
	p, err := blocked.Parse(fmt.Sprint(keyBits))
	require.NoError(t, err)
	b, s := p.NewBuilder(), blockedFamily.New(t, 1000, 0.01)
	for i := range uint64(1000) {
		b.AddHash(hash64.Mix(i))
		s.AddHash(i)
	}
	data, ok := b.Finish(nil)
	require.True(t, ok)
	f, err := blocked.Decode(data)
	require.NoError(t, err)
	for i := range uint64(100_000) {
		require.Equal(t, f.MayContainHash(hash64.Mix(i)), s.ContainsHash(i))
	}
}

func TestBlockedMerge(t *testing.T) {
	a, b, both := blockedFamily.New(t, 200, 0.01), blockedFamily.New(t, 200, 0.01), blockedFamily.New(t, 200, 1e-6)
	for i := range uint64(200) {
		both.AddHash(i)
		if i%2 == 0 {
			a.AddHash(i)
		} else {
			b.AddHash(i)
		}
	}
	require.NoError(t, a.Merge(b))
	for i := range uint64(200) {
		require.True(t, a.ContainsHash(i))
	}
	require.InEpsilon(t, 200, a.Len(), 0.02)
	require.ErrorContains(t, a.Merge(both), "cannot be merged")
}

func TestBlockedSetGoldenBytes(t *testing.T) {
	GoldenSet(t, "blocked/set.golden", blockedFamily.Filled(t, 60, 0.01))
	GoldenSet(t, "blocked/set-14.golden", blockedFamily.Filled(t, 20, 1e-6))
	oneLine := Bytes(t, blockedFamily.Filled(t, 20, 0.01))
	Forgeries(t, oneLine, blockedFamily.Zero, []SetForgery{
		{At: 71, To: 0xff, Want: "a blocked set of "},
		{At: 72, To: 0, Want: "made for 0"},
		{At: 78, To: 1, Want: "made for "},
		{At: 80, To: 0, Want: "with 0 probes"},
		{At: 87, To: 1, Want: "probes cannot be"},
	}...)
}

func TestBlockedHostileSets(t *testing.T) {
	HostileSets(t, blockedFamily.Zero, 0, Bytes(t, blockedFamily.Filled(t, 20, 0.01)))
}

func FuzzBlockedSet(f *testing.F) {
	seeds := [][]byte{Bytes(f, blockedFamily.Filled(f, 20, 0.01)), Bytes(f, blockedFamily.Filled(f, 1, 1e-6))}
	fuzzSet(f, blockedFamily.Any().Zero, Use, seeds)
}

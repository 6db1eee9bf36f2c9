package blocked_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/filterpolicy/internal/mix"
	"github.com/siftkv/siftkv/filterpolicy/internal/settest"
)

func newSet(tb testing.TB, n int, rate float64) *blocked.Set {
	tb.Helper()
	s, err := blocked.New(n, rate)
	require.NoError(tb, err)
	return s
}

// filled returns a set of n hashes with the salt 1.
func filled(tb testing.TB, n int, rate float64) *blocked.Set {
	tb.Helper()
	s := newSet(tb, max(1, n), rate)
	for i := range uint64(n) {
		s.AddHash(settest.Hash(1, i))
	}
	return s
}

func zeroSet() settest.Codec { return &blocked.Set{} }

func TestNewRefuses(t *testing.T) {
	_, err := blocked.New(0, 0.01)
	require.ErrorContains(t, err, "capacity must be from 1 to ")
	_, err = blocked.New(1000, 1)
	require.ErrorContains(t, err, "false-positive rate must be from ")
	_, err = blocked.New(1_000_000, 1e-9)
	require.ErrorContains(t, err, "a blocked set of 1000000 keys has no rate of 1e-09 within 64 bits per key: take a bloom set")
	_, err = blocked.BitsFor(1_000_000, 1e-9)
	require.Error(t, err)
}

func TestSetHoldsItsKeysAndItsRate(t *testing.T) {
	for rate, keyBits := range map[float64]float64{0.5: 1.6, 0.1: 5, 0.01: 10, 0.001: 15.8, 1e-6: 45} {
		n := settest.Share(200_000)
		s := filled(t, n, rate)
		for i := range uint64(n) {
			require.True(t, s.ContainsHash(settest.Hash(1, i)))
		}
		require.LessOrEqual(t, 8*float64(s.Size()), keyBits*float64(n)+512, "rate %g", rate)
		require.InEpsilon(t, n, s.Len(), 0.7*rate+0.001)
		require.Equal(t, n, s.Cap())
		settest.KeepsPromise(t, s.ContainsHash, 500_000, 1.02*rate)
		if rate > 1e-4 { // below it, a few lines make the rate, and it scatters
			require.InEpsilon(t, rate, s.FalsePositiveRate(), 0.15)
		}
		before := settest.Bytes(t, s)
		for i := range uint64(n) {
			require.False(t, s.AddNewHash(settest.Hash(1, i)))
		}
		require.Equal(t, before, settest.Bytes(t, s))
		s.Reset()
		require.Zero(t, s.FillRatio()+s.FalsePositiveRate()+float64(s.Len()))
	}
}

func TestMeanRateOfSmallSets(t *testing.T) {
	for _, n := range []int{1, 10, 52, 100, 1000} {
		settest.KeepsPromiseOnAverage(t, n, settest.Share(300), 0.0102, func() settest.Hashes { return newSet(t, n, 0.01) })
	}
}

func TestSetTakesUnmixedHashes(t *testing.T) {
	for name, at := range settest.Unmixed {
		for _, n := range []uint64{100, 400, 1600, 12800} {
			positives, sets := 0, uint64(max(10, settest.Share(40)))
			for salt := range sets {
				s := newSet(t, int(n), 0.01)
				for i := range n {
					s.AddHash(at(salt<<20 + i))
				}
				for i := range uint64(10_000) {
					if s.ContainsHash(at(salt<<20 + n + i)) {
						positives++
					}
				}
			}
			require.LessOrEqual(t, float64(positives)/float64(sets*10_000), 0.0115, "%s, %d keys", name, n)
		}
	}
}

// A set has the bits that a file's filter of the same shape has for the mixed hashes.
func TestSetAnswersAsAFilterDoes(t *testing.T) {
	keyBits, err := blocked.BitsFor(1000, 0.01)
	require.NoError(t, err)
	p, err := blocked.Parse(fmt.Sprint(keyBits))
	require.NoError(t, err)
	b, s := p.NewBuilder(), newSet(t, 1000, 0.01)
	for i := range uint64(1000) {
		b.AddHash(mix.Mix(i))
		s.AddHash(i)
	}
	data, ok := b.Finish(nil)
	require.True(t, ok)
	f, err := blocked.Decode(data)
	require.NoError(t, err)
	for i := range uint64(100_000) {
		require.Equal(t, f.MayContainHash(mix.Mix(i)), s.ContainsHash(i))
	}
}

func TestMerge(t *testing.T) {
	a, b, both := newSet(t, 200, 0.01), newSet(t, 200, 0.01), newSet(t, 200, 1e-6)
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

func TestZeroSet(t *testing.T) {
	var s blocked.Set
	require.False(t, s.Contains(nil))
	require.Zero(t, s.FillRatio()+s.FalsePositiveRate())
	require.Panics(t, func() { s.Add(nil) })
	settest.Zero(t, zeroSet)
}

func TestSetBytes(t *testing.T) {
	for _, n := range []int{0, 1, 100, 20_000} {
		settest.RoundTrip(t, filled(t, n, 0.01), zeroSet)
	}
	settest.Damage(t, filled(t, 20, 0.01), zeroSet)
	settest.Golden(t, "set.golden", filled(t, 60, 0.01))
	settest.Golden(t, "set-14.golden", filled(t, 20, 1e-6))
	data := settest.Bytes(t, filled(t, 20, 0.01)) // one line
	for at, to := range map[int]byte{71: 0xff, 72: 0, 78: 1, 80: 0, 87: 1} {
		require.ErrorContains(t, zeroSet().UnmarshalBinary(settest.Forge(data, at, to)), "a blocked set of ")
	}
	data[5] = 2
	require.ErrorContains(t, zeroSet().UnmarshalBinary(settest.Reseal(data)), "version is 2; this program reads version 1")
}

func FuzzSet(f *testing.F) {
	settest.Fuzz(f, func() *blocked.Set { return &blocked.Set{} }, func(tb testing.TB, s *blocked.Set) {
		tb.Helper()
		for i := range uint64(4) {
			s.AddHash(settest.Hash(1, i))
			require.True(tb, s.ContainsHash(settest.Hash(1, i)))
		}
		require.True(tb, s.FalsePositiveRate() > 0 && s.FalsePositiveRate() <= 1)
	}, settest.Bytes(f, filled(f, 20, 0.01)), settest.Bytes(f, filled(f, 1, 1e-6)))
}

func BenchmarkSet(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("add/%d", n), func(b *testing.B) {
			s, i := newSet(b, n, 0.01), uint64(0)
			for b.Loop() {
				s.AddHash(settest.Hash(1, i%uint64(n)))
				i++
			}
		})
		s := filled(b, n, 0.01)
		for what, salt := range map[string]uint64{"present": 1, "absent": 2} {
			b.Run(fmt.Sprintf("%s/%d", what, n), func(b *testing.B) {
				i := uint64(0)
				for b.Loop() {
					s.ContainsHash(settest.Hash(salt, i%uint64(n)))
					i++
				}
			})
		}
	}
}

func ExampleSet() {
	seen, err := blocked.New(1_000_000, 0.01)
	if err != nil {
		fmt.Println(err)
		return
	}
	seen.Add([]byte("apple"))
	fmt.Println(seen.Contains([]byte("apple")), seen.Contains([]byte("pear")))
	fmt.Printf("%.1f bits per key\n", float64(8*seen.Size())/float64(seen.Cap()))
	// Output:
	// true false
	// 9.9 bits per key
}

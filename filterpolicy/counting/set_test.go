package counting_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/filterpolicy/counting"
	"github.com/siftkv/siftkv/filterpolicy/internal/settest"
)

func newSet(tb testing.TB, n int, rate float64, width int) *counting.Set {
	tb.Helper()
	s, err := counting.New(n, rate, &counting.Options{CounterBits: width})
	require.NoError(tb, err)
	return s
}

// filled returns a set of n hashes with the salt 1.
func filled(tb testing.TB, n int, rate float64, width int) *counting.Set {
	tb.Helper()
	s := newSet(tb, max(1, n), rate, width)
	for i := range uint64(n) {
		s.AddHash(settest.Hash(1, i))
	}
	return s
}

func zeroSet() settest.Codec { return &counting.Set{} }

func TestNewRefuses(t *testing.T) {
	_, err := counting.New(0, 0.01, nil)
	require.ErrorContains(t, err, "capacity must be from 1 to ")
	_, err = counting.New(1, 1, nil)
	require.ErrorContains(t, err, "false-positive rate must be from ")
	for _, width := range []int{-4, 1, 5, 16} {
		_, err = counting.New(1, 0.01, &counting.Options{CounterBits: width})
		require.ErrorContains(t, err, "counters must have 4 or 8 bits, not ")
	}
	s, err := counting.New(1000, 0.01, nil)
	require.NoError(t, err)
	require.Equal(t, 15, s.MaxCount())
	require.InDelta(t, 38.4, 8*float64(s.Size())/1000, 0.3)
}

func TestKeysRateAndRemoval(t *testing.T) {
	for _, width := range []int{4, 8} {
		for _, rate := range []float64{0.1, 0.01, 0.001} {
			n := settest.Share(50_000)
			s := filled(t, n, rate, width)
			require.Equal(t, n, s.Len())
			require.InDelta(t, 0.5, s.FillRatio(), 0.06)
			require.InEpsilon(t, rate, s.FalsePositiveRate(), 0.15)
			settest.KeepsPromise(t, s.ContainsHash, 200_000, 1.02*rate)
			for i := range uint64(n) {
				require.True(t, s.ContainsHash(settest.Hash(1, i)))
			}
			for i := range uint64(n) {
				require.True(t, s.RemoveHash(settest.Hash(1, i)))
			}
			require.Zero(t, s.Len())
			require.Zero(t, s.FillRatio(), "what was added and removed leaves nothing")
			require.Equal(t, settest.Bytes(t, newSet(t, n, rate, width)), settest.Bytes(t, s))
		}
	}
}

// The formula of partitioned filters is exact, and double hashing would show in small
// sets and at low rates: see package mix.
func TestMeanRateOfSmallSets(t *testing.T) {
	for _, rate := range []float64{0.01, 0.0001} {
		for _, n := range []int{1, 2, 3, 5, 10, 30, 100} {
			settest.KeepsPromiseOnAverage(t, n, settest.Share(500), rate, func() settest.Hashes { return newSet(t, n, rate, 4) })
		}
	}
}

func TestUnmixedHashes(t *testing.T) {
	n := settest.Share(20_000)
	for name, at := range settest.Unmixed {
		s := newSet(t, n, 0.01, 4)
		for i := range uint64(n) {
			s.AddHash(at(i))
		}
		positives := 0
		for i := range uint64(100_000) {
			if s.ContainsHash(at(uint64(n) + i)) {
				positives++
			}
		}
		require.LessOrEqual(t, positives, 1200, name)
	}
}

func TestCount(t *testing.T) {
	for width, top := range map[int]int{4: 15, 8: 255} {
		s := newSet(t, 100, 1e-6, width)
		key := []byte("key")
		require.Zero(t, s.Count(key))
		for i := 1; i < top; i++ {
			s.Add(key)
			require.Equal(t, i, s.Count(key))
		}
		for i := top - 2; i >= 0; i-- {
			require.True(t, s.Remove(key))
			require.Equal(t, i, s.Count(key))
		}
		require.False(t, s.Remove(key))
		require.Zero(t, s.Len())
	}
}

// A saturated counter stands for nobody knows how many keys, and never goes down.
func TestSaturation(t *testing.T) {
	for width, top := range map[int]int{4: 15, 8: 255} {
		s := newSet(t, 100, 0.01, width)
		require.Zero(t, s.Saturated())
		key := []byte("key")
		for range top + 20 {
			s.Add(key)
		}
		require.InDelta(t, 6.5, s.Saturated(), 0.6, "each probe meets a counter of its own")
		require.Equal(t, top, s.Count(key))
		require.Equal(t, top+20, s.Len())
		for range top + 30 {
			require.True(t, s.Remove(key))
		}
		require.Equal(t, top, s.Count(key))
		require.True(t, s.Contains(key))
		require.Zero(t, s.Len())
		s.Reset()
		require.False(t, s.Contains(key))
	}
}

// Removing a key that is not there is refused and changes nothing, however often.
func TestRemovalOfAbsentKeys(t *testing.T) {
	s := filled(t, 1000, 0.01, 4)
	before := settest.Bytes(t, s)
	refused := 0
	for i := range uint64(10_000) {
		if h := settest.Hash(settest.Absent, i); !s.ContainsHash(h) {
			require.False(t, s.RemoveHash(h))
			refused++
		}
	}
	require.Greater(t, refused, 9800)
	require.Equal(t, before, settest.Bytes(t, s))
}

// Against a multiset: no key is ever lost or under-counted, in sets far too small for
// what they hold, saturated or not.
func TestAgainstAMultiset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.SampledFrom([]int{4, 8}).Draw(t, "width")
		s, err := counting.New(rapid.IntRange(1, 30).Draw(t, "n"), 0.05, &counting.Options{CounterBits: width})
		require.NoError(t, err)
		model, total := map[uint64]int{}, 0
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			h := rapid.Uint64Range(0, 20).Draw(t, "h")
			switch {
			case rapid.Bool().Draw(t, "add"):
				s.AddHash(h)
				model[h]++
				total++
			case model[h] > 0:
				require.True(t, s.RemoveHash(h))
				model[h]--
				total--
			case !s.ContainsHash(h):
				require.False(t, s.RemoveHash(h))
			}
		}
		require.Equal(t, total, s.Len())
		for h, n := range model {
			require.GreaterOrEqual(t, s.CountHash(h), min(n, s.MaxCount()))
			require.Equal(t, s.CountHash(h) > 0, s.ContainsHash(h))
		}
	})
}

func TestMerge(t *testing.T) {
	for _, width := range []int{4, 8} {
		a, b, both := newSet(t, 100, 0.01, width), newSet(t, 100, 0.01, width), newSet(t, 100, 0.01, width)
		for i := range uint64(300) {
			h := settest.Hash(1, i%37)
			both.AddHash(h)
			if i%3 == 0 {
				a.AddHash(h)
			} else {
				b.AddHash(h)
			}
		}
		require.NoError(t, a.Merge(b))
		require.Equal(t, settest.Bytes(t, both), settest.Bytes(t, a))
		require.NoError(t, a.Merge(a))
		require.NoError(t, a.Merge(a))
		require.Equal(t, min(4*8, a.MaxCount()), min(4*8, a.CountHash(settest.Hash(1, 0))), "saturates, never wraps")
	}
	a := newSet(t, 100, 0.01, 4)
	require.ErrorContains(t, a.Merge(newSet(t, 100, 0.01, 8)), "cannot be merged")
	require.ErrorContains(t, a.Merge(newSet(t, 101, 0.01, 4)), "cannot be merged")
	require.ErrorContains(t, a.Merge(&counting.Set{}), "cannot be merged")
}

func TestZeroSet(t *testing.T) {
	var s counting.Set
	require.False(t, s.ContainsHash(1))
	require.False(t, s.RemoveHash(1))
	require.Zero(t, s.CountHash(1)+s.Len()+s.Cap()+s.Size()+s.Saturated())
	require.Zero(t, s.FillRatio()+s.FalsePositiveRate())
	require.Panics(t, func() { s.AddHash(1) })
	settest.Zero(t, zeroSet)
}

func TestBytes(t *testing.T) {
	for _, width := range []int{4, 8} {
		for _, n := range []int{0, 1, 100, 20_000} {
			settest.RoundTrip(t, filled(t, n, 0.01, width), zeroSet)
		}
		settest.Damage(t, filled(t, 10, 0.01, width), zeroSet)
		s := filled(t, 10, 0.01, width)
		for range 300 {
			s.AddHash(7)
		}
		settest.Golden(t, fmt.Sprintf("counting-%d.golden", width), s)
	}
}

func TestForgedSetsAreRefused(t *testing.T) {
	odd := settest.Bytes(t, newSet(t, 12, 0.1, 4)) // three slices of an odd number of counters
	for n := 13; odd[16+16]*odd[16+24]%2 == 0; n++ {
		odd = settest.Bytes(t, newSet(t, n, 0.1, 4))
	}
	for _, c := range []struct {
		at   int
		to   byte
		want string
	}{
		{7, 0xff, "a counting set of "},
		{8, 0, "made for 0"},
		{14, 1, "made for "},
		{16, 0, "slices of 0 counters cannot be"},
		{16, 3, "bytes do not hold "},
		{23, 0xff, "bytes do not hold "},
		{24, 0, "with 0 slices"},
		{24, 45, "with 45 slices"},
		{25, 8, "bytes do not hold "},
		{25, 5, "cannot be"},
		{26, 1, "cannot be"},
		{len(odd) - 21, 0x10, "the half byte after the last counter is not zero"},
	} {
		require.ErrorContains(t, zeroSet().UnmarshalBinary(settest.Forge(odd, c.at, c.to)), c.want)
	}
	odd[5] = 2
	require.ErrorContains(t, zeroSet().UnmarshalBinary(settest.Reseal(odd)), "version is 2; this program reads version 1")
}

func FuzzSet(f *testing.F) {
	settest.Fuzz(f, func() *counting.Set { return &counting.Set{} }, func(tb testing.TB, s *counting.Set) {
		tb.Helper()
		for i := range uint64(4) {
			h := settest.Hash(1, i)
			before := s.CountHash(h)
			s.AddHash(h)
			require.Equal(tb, min(before+1, s.MaxCount()), s.CountHash(h))
			require.True(tb, s.RemoveHash(h))
		}
		require.True(tb, s.FalsePositiveRate() >= 0 && s.FalsePositiveRate() <= 1)
	}, settest.Bytes(f, filled(f, 10, 0.01, 4)), settest.Bytes(f, filled(f, 10, 0.01, 8)))
}

func TestNothingIsAllocated(t *testing.T) {
	s := newSet(t, 1000, 0.01, 4)
	key := []byte("key")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		s.Add(key)
		s.Contains(key)
		s.Count(key)
		s.Remove(key)
	}))
}

func BenchmarkSet(b *testing.B) {
	const n = 1_000_000
	for _, width := range []int{4, 8} {
		s := filled(b, n, 0.01, width)
		for name, op := range map[string]func(i uint64){
			"add and remove": func(i uint64) {
				s.AddHash(settest.Hash(2, i))
				s.RemoveHash(settest.Hash(2, i))
			},
			"count":   func(i uint64) { s.CountHash(settest.Hash(1, i)) },
			"present": func(i uint64) { s.ContainsHash(settest.Hash(1, i)) },
			"absent":  func(i uint64) { s.ContainsHash(settest.Hash(3, i)) },
		} {
			b.Run(fmt.Sprintf("%s/%d bits/%d", name, width, n), func(b *testing.B) {
				i := uint64(0)
				for b.Loop() {
					op(i % n)
					i++
				}
			})
		}
	}
}

func Example() {
	cart, err := counting.New(1_000_000, 0.01, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	apple := []byte("apple")
	cart.Add(apple)
	cart.Add(apple)
	fmt.Println(cart.Count(apple), cart.Remove(apple), cart.Contains(apple))
	fmt.Println(cart.Count(apple), cart.Remove(apple), cart.Contains(apple))
	fmt.Println(cart.Remove(apple))
	// Output:
	// 2 true true
	// 1 true false
	// false
}

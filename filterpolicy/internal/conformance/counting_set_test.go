package conformance

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/filterpolicy/counting"
)

// countingFamilies are the sets by width of counter.
var countingFamilies = map[int]Family[*counting.Set]{
	4: With(counting.New, nil),
	8: With(counting.New, &counting.Options{CounterBits: 8}),
}

func TestCountingSet(t *testing.T) {
	for width, f := range countingFamilies {
		t.Run(fmt.Sprintf("%d bits", width), func(t *testing.T) { SetSuite(t, f) })
	}
}

func BenchmarkCountingSet(b *testing.B) {
	const n = 1_000_000
	for width, f := range countingFamilies {
		benchmarkSets(b, fmt.Sprintf("%d bits", width), f, n, 0.01)
		s, i := countingFamilies[width].Filled(b, n, 0.01), uint64(0)
		b.Run(fmt.Sprintf("add and remove/%d bits/%d", width, n), func(b *testing.B) {
			for b.Loop() {
				s.AddHash(Hash(2, i%n))
				s.RemoveHash(Hash(2, i%n))
				i++
			}
		})
		b.Run(fmt.Sprintf("count/%d bits/%d", width, n), func(b *testing.B) {
			for b.Loop() {
				s.CountHash(Hash(1, i%n))
				i++
			}
		})
	}
}

func TestCountingNewRefuses(t *testing.T) {
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

func TestCountingWhatIsAddedAndRemovedLeavesNothing(t *testing.T) {
	for width := range countingFamilies {
		n := Share(50_000)
		s := countingFamilies[width].Filled(t, n, 0.01)
		require.InDelta(t, 0.5, s.FillRatio(), 0.06)
		for i := range uint64(n) {
			require.True(t, s.RemoveHash(Hash(1, i)))
		}
		require.Equal(t, Bytes(t, countingFamilies[width].New(t, n, 0.01)), Bytes(t, s))
	}
}

// The formula of partitioned filters is exact, and double hashing would show in small
// sets and at low rates: see hash64.Point.
func TestCountingMeanRateOfSmallSets(t *testing.T) {
	for _, rate := range []float64{0.01, 0.0001} {
		for _, n := range []int{1, 2, 3, 5, 10, 30, 100} {
			KeepsPromiseOnAverage(t, countingFamilies[4], n, Share(500), rate, rate)
		}
	}
}

func TestCountingCount(t *testing.T) {
	for width, top := range map[int]int{4: 15, 8: 255} {
		s := countingFamilies[width].New(t, 100, 1e-6)
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
func TestCountingSaturation(t *testing.T) {
	for width, top := range map[int]int{4: 15, 8: 255} {
		s := countingFamilies[width].New(t, 100, 0.01)
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
func TestCountingRemovalOfAbsentKeys(t *testing.T) {
	s := countingFamilies[4].Filled(t, 1000, 0.01)
	before := Bytes(t, s)
	refused := 0
	for i := range uint64(10_000) {
		if h := Hash(Absent, i); !s.ContainsHash(h) {
			require.False(t, s.RemoveHash(h))
			refused++
		}
	}
	require.Greater(t, refused, 9800)
	require.Equal(t, before, Bytes(t, s))
}

// Against a multiset: no key is ever lost or under-counted, in sets far too small for
// what they hold, saturated or not.
func TestCountingAgainstAMultiset(t *testing.T) {
	Check(t, func(t *rapid.T) {
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

func TestCountingMerge(t *testing.T) {
	for _, width := range []int{4, 8} {
		a, b, both := countingFamilies[width].New(t, 100, 0.01), countingFamilies[width].New(t, 100, 0.01),
			countingFamilies[width].New(t, 100, 0.01)
		for i := range uint64(300) {
			h := Hash(1, i%37)
			both.AddHash(h)
			if i%3 == 0 {
				a.AddHash(h)
			} else {
				b.AddHash(h)
			}
		}
		require.NoError(t, a.Merge(b))
		require.Equal(t, Bytes(t, both), Bytes(t, a))
		require.NoError(t, a.Merge(a))
		require.NoError(t, a.Merge(a))
		require.Equal(t, min(4*8, a.MaxCount()), min(4*8, a.CountHash(Hash(1, 0))), "saturates, never wraps")
	}
	a := countingFamilies[4].New(t, 100, 0.01)
	require.ErrorContains(t, a.Merge(countingFamilies[8].New(t, 100, 0.01)), "cannot be merged")
	require.ErrorContains(t, a.Merge(countingFamilies[4].New(t, 101, 0.01)), "cannot be merged")
	require.ErrorContains(t, a.Merge(&counting.Set{}), "cannot be merged")
}

func TestCountingGolden(t *testing.T) {
	for width := range countingFamilies {
		s := countingFamilies[width].Filled(t, 10, 0.01)
		for range 300 {
			s.AddHash(7)
		}
		GoldenSet(t, fmt.Sprintf("counting/counting-%d.golden", width), s)
	}
}

func TestCountingForgedSetsAreRefused(t *testing.T) {
	odd := Bytes(t, countingFamilies[4].New(t, 12, 0.1)) // three slices of an odd number of counters
	for n := 13; odd[16+16]*odd[16+24]%2 == 0; n++ {
		odd = Bytes(t, countingFamilies[4].New(t, n, 0.1))
	}
	Forgeries(t, odd, countingFamilies[4].Zero, []SetForgery{
		{At: 7, To: 0xff, Want: "a counting set of "},
		{At: 8, To: 0, Want: "made for 0"},
		{At: 14, To: 1, Want: "made for "},
		{At: 16, To: 0, Want: "slices of 0 counters cannot be"},
		{At: 16, To: 3, Want: "bytes do not hold "},
		{At: 23, To: 0xff, Want: "bytes do not hold "},
		{At: 24, To: 0, Want: "with 0 slices"},
		{At: 24, To: 45, Want: "with 45 slices"},
		{At: 25, To: 8, Want: "bytes do not hold "},
		{At: 25, To: 5, Want: "cannot be"},
		{At: 26, To: 1, Want: "cannot be"},
		{At: len(odd) - 21, To: 0x10, Want: "the half byte after the last counter is not zero"},
	}...)
}

func TestCountingHostileSets(t *testing.T) {
	HostileSets(t, countingFamilies[4].Zero, 0, Bytes(t, countingFamilies[4].Filled(t, 10, 0.01)),
		Bytes(t, countingFamilies[8].Filled(t, 10, 0.01)))
}

func FuzzCountingSet(f *testing.F) {
	seeds := [][]byte{Bytes(f, countingFamilies[4].Filled(f, 10, 0.01)),
		Bytes(f, countingFamilies[8].Filled(f, 10, 0.01))}
	fuzzSet(f, countingFamilies[4].Zero, func(tb testing.TB, s *counting.Set) {
		tb.Helper()
		for i := range uint64(4) {
			h := Hash(1, i)
			before := s.CountHash(h)
			s.AddHash(h)
			require.Equal(tb, min(before+1, s.MaxCount()), s.CountHash(h))
			require.True(tb, s.RemoveHash(h))
		}
		Use(tb, s)
	}, seeds)
}

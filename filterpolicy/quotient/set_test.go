package quotient_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/internal/filtertest"
	"github.com/siftkv/siftkv/filterpolicy/quotient"
)

func newSet(tb testing.TB, n int, rate float64, grow int) *quotient.Set {
	tb.Helper()
	s, err := quotient.New(n, rate, &quotient.Options{Grow: grow})
	require.NoError(tb, err)
	return s
}

// present returns the hash of a key that tests add; filtertest.Good(2) has those they do not.
func present(i int) uint64 { return filtertest.Good(1).At(uint64(i)) }

// fill adds hashes from..to-1.
func fill(tb testing.TB, s *quotient.Set, from, to int) {
	tb.Helper()
	for i := from; i < to; i++ {
		if err := s.AddHash(present(i)); err != nil {
			require.NoError(tb, err)
		}
	}
}

func TestSetByKey(t *testing.T) {
	s := newSet(t, 100, 1e-9, 0)
	require.False(t, s.Contains([]byte("abc")))
	require.False(t, s.Remove([]byte("abc")))
	require.NoError(t, s.Add([]byte("abc")))
	require.NoError(t, s.Add(nil))
	added, err := s.AddNew([]byte("abc"))
	require.NoError(t, err)
	require.False(t, added)
	require.NoError(t, s.Add([]byte("abc")))
	require.Equal(t, 2, s.Count([]byte("abc")))
	require.Equal(t, 1, s.Count(nil))
	require.Zero(t, s.Count([]byte("abd")))
	require.Equal(t, 3, s.Len())
	require.True(t, s.Remove([]byte("abc")))
	require.True(t, s.Contains([]byte("abc")))
	require.True(t, s.Remove([]byte("abc")))
	require.False(t, s.Contains([]byte("abc")))
	require.Equal(t, 1, s.Len())
	s.Reset()
	require.Zero(t, s.Len())
	require.False(t, s.Contains(nil))
	require.Zero(t, s.FalsePositiveRate())
}

func TestNewSaysWhy(t *testing.T) {
	for _, c := range []struct {
		n    int
		rate float64
		grow int
		want string
	}{
		{0, 0.01, 0, "capacity must be from 1"},
		{10, 0, 0, "false-positive rate must be from"},
		{10, math.NaN(), 0, "false-positive rate must be from"},
		{10, 0.01, -1, "Options.Grow must be 0 to 32, not -1"},
		{10, 0.01, 33, "Options.Grow must be 0 to 32, not 33"},
		{10, 1e-12, 32, "do not fit 64 bits"},
		{1 << 40, 1e-12, 0, "do not fit 64 bits"},
	} {
		_, err := quotient.New(c.n, c.rate, &quotient.Options{Grow: c.grow})
		require.ErrorContains(t, err, c.want)
	}
}

// The promised rate holds at the asked capacity and up to the last key before ErrFull,
// however often the set grew; the estimate is what is measured.
func TestSetRateHolds(t *testing.T) {
	for _, rate := range []float64{0.5, 0.03, 0.01, 0.001} {
		for _, grow := range []int{0, 1, 3} {
			const n = 2000
			s := newSet(t, n, rate, grow)
			require.GreaterOrEqual(t, s.Cap(), n)
			added := 0
			for added < 40*n && s.AddHash(present(added)) == nil { // a coarse range takes many as copies
				added++
			}
			require.Equal(t, added, s.Len())
			require.GreaterOrEqual(t, added, n<<grow)
			require.LessOrEqual(t, s.FalsePositiveRate(), rate)
			const probes = 100_000
			positives := 0
			for i := range uint64(probes) {
				if s.ContainsHash(filtertest.Good(2).At(i)) {
					positives++
				}
			}
			want := s.FalsePositiveRate()
			require.InDelta(t, want, float64(positives)/probes, 4*math.Sqrt(want/probes))
			for i := range added {
				require.True(t, s.ContainsHash(present(i)))
			}
		}
	}
}

func TestSetBitsAreAsStated(t *testing.T) {
	for _, n := range []int{100_000, 131_073} {
		s := newSet(t, n, 0.01, 0)
		fill(t, s, 0, n)
		require.InDelta(t, (7+2.25)/0.95, 8*float64(s.Size())/float64(n), 0.03)
	}
}

// Counters are as good as hashes.
func TestSetMixes(t *testing.T) {
	s := newSet(t, 20_000, 0.01, 0)
	for i := range uint64(20_000) {
		require.NoError(t, s.AddHash(i))
	}
	positives := 0
	for i := range uint64(100_000) {
		if s.ContainsHash(1<<20 + i) {
			positives++
		}
	}
	require.LessOrEqual(t, positives, 1130)
}

// One key added ever so often blocks nothing.
func TestOneKeyManyTimes(t *testing.T) {
	const times = 200_000
	s := newSet(t, 1000, 0.001, 0)
	for range times {
		require.NoError(t, s.AddHash(7))
	}
	fill(t, s, 0, 999)
	require.Equal(t, times, s.CountHash(7))
	for range times {
		require.True(t, s.RemoveHash(7))
	}
	require.False(t, s.RemoveHash(7))
	require.Equal(t, 999, s.Len())
}

// A set that is resized gives the answers that it gave, and its rate follows from keys alone.
func TestResizeChangesNoAnswer(t *testing.T) {
	s := newSet(t, 1000, 0.01, 0)
	fill(t, s, 0, 1000)
	answers := func() (yes []uint64) {
		for i := range uint64(20_000) {
			if s.ContainsHash(filtertest.Good(2).At(i)) {
				yes = append(yes, i)
			}
		}
		return yes
	}
	want, rate := answers(), s.FalsePositiveRate()
	require.NotEmpty(t, want)
	_, bits := s.Geometry()
	for _, n := range []int{8000, 2000, 0, 64_000, 1000} {
		require.NoError(t, s.Resize(n))
		require.GreaterOrEqual(t, s.Cap(), n)
		require.Equal(t, want, answers())
		require.InDelta(t, rate, s.FalsePositiveRate(), 0)
	}
	_, now := s.Geometry()
	require.Equal(t, bits, now)
	require.ErrorIs(t, s.Resize(1_000_000), quotient.ErrFull)
	require.NoError(t, s.Resize(8000))
	fill(t, s, 1000, 8000)
	require.InEpsilon(t, 8*rate, s.FalsePositiveRate(), 0.1)
}

// Parts, merged, are the set of all keys, byte by byte.
func TestMergeIsTheSetOfAllKeys(t *testing.T) {
	whole, a, b := newSet(t, 3000, 0.01, 2), newSet(t, 3000, 0.01, 2), newSet(t, 3000, 0.01, 2)
	fill(t, whole, 0, 6000)
	fill(t, whole, 1000, 1500)
	fill(t, a, 0, 2500)
	fill(t, b, 2500, 6000)
	fill(t, b, 1000, 1500)
	before := encode(t, b)
	require.NoError(t, a.Merge(b))
	require.Equal(t, encode(t, whole), encode(t, a))
	require.Equal(t, before, encode(t, b))
	require.Equal(t, 6500, a.Len())

	require.NoError(t, b.Merge(b))
	require.Equal(t, 8000, b.Len())
	require.GreaterOrEqual(t, b.CountHash(present(5000)), 2)
}

func TestSetMergeSaysWhy(t *testing.T) {
	a, b := newSet(t, 1000, 0.01, 0), newSet(t, 1000, 0.01, 0)
	fill(t, a, 0, 900)
	fill(t, b, 900, 1800)
	before := encode(t, a)
	require.ErrorIs(t, a.Merge(b), quotient.ErrFull)
	require.ErrorIs(t, a.Merge(newSet(t, 1100, 0.01, 0)), quotient.ErrUnlike)
	require.Equal(t, before, encode(t, a))
	require.NoError(t, a.Resize(2000))
	require.NoError(t, a.Merge(b))
	require.Equal(t, 1800, a.Len())
}

func TestZeroSetIsFull(t *testing.T) {
	var s quotient.Set
	require.ErrorIs(t, s.AddHash(1), quotient.ErrFull)
	require.ErrorIs(t, s.Resize(1), quotient.ErrFull)
	require.False(t, s.ContainsHash(1))
	require.False(t, s.RemoveHash(1))
	require.Zero(t, s.CountHash(1))
	require.Zero(t, s.Len()+s.Cap())
	s.Reset()
}

package conformance

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/quotient"
)

func quotientNewSet(tb testing.TB, n int, rate float64, grow int) *quotient.Set {
	tb.Helper()
	s, err := quotient.New(n, rate, &quotient.Options{Grow: grow})
	require.NoError(tb, err)
	return s
}

var quotientFamily = With(quotient.New, nil)

func TestQuotientSet(t *testing.T) { SetSuite(t, quotientFamily) }

// quotientPresent returns the hash of a key that tests add; Good(2) has those they do not.
func quotientPresent(i int) uint64 { return Good(1).At(uint64(i)) }

// quotientFill adds hashes from..to-1.
func quotientFill(tb testing.TB, s *quotient.Set, from, to int) {
	tb.Helper()
	for i := from; i < to; i++ {
		if err := s.AddHash(quotientPresent(i)); err != nil {
			require.NoError(tb, err)
		}
	}
}

func TestQuotientNewSaysWhy(t *testing.T) {
	for _, c := range []struct {
		n    int64
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
		if int64(int(c.n)) != c.n {
			continue // an int of 32 bits cannot be so large
		}
		_, err := quotient.New(int(c.n), c.rate, &quotient.Options{Grow: c.grow})
		require.ErrorContains(t, err, c.want)
	}
}

// The promised rate holds at the asked capacity and up to the last key before ErrFull,
// however often the set grew; the estimate is what is measured.
func TestQuotientSetRateHolds(t *testing.T) {
	for _, rate := range []float64{0.5, 0.03, 0.01, 0.001} {
		for _, grow := range []int{0, 1, 3} {
			const n = 2000
			s := quotientNewSet(t, n, rate, grow)
			require.GreaterOrEqual(t, s.Cap(), n)
			added := 0
			for added < 40*n && s.AddHash(quotientPresent(added)) == nil { // a coarse range takes many as copies
				added++
			}
			require.Equal(t, added, s.Len())
			require.GreaterOrEqual(t, added, n<<grow)
			require.LessOrEqual(t, s.FalsePositiveRate(), rate)
			want := s.FalsePositiveRate()
			got, sigma := SetRate(s.ContainsHash, Share(100_000), want)
			require.InDelta(t, want, got, 4*sigma)
			for i := range added {
				require.True(t, s.ContainsHash(quotientPresent(i)))
			}
		}
	}
}

func TestQuotientSetBitsAreAsStated(t *testing.T) {
	for _, n := range []int{100_000, 131_073} {
		s := quotientNewSet(t, n, 0.01, 0)
		quotientFill(t, s, 0, n)
		require.InDelta(t, (7+2.25)/0.95, 8*float64(s.Size())/float64(n), 0.03)
	}
}

// One key that is added nine times blocks the whole of a well-known library's filter. Here it
// may come ever so often and blocks nothing.
func TestQuotientFaultOneKeyBlocksTheFilter(t *testing.T) {
	times := Share(200_000)
	s := quotientNewSet(t, 1000, 0.001, 0)
	for range times {
		require.NoError(t, s.AddHash(7))
	}
	quotientFill(t, s, 0, 999)
	require.Equal(t, times, s.CountHash(7))
	for range times {
		require.True(t, s.RemoveHash(7))
	}
	require.False(t, s.RemoveHash(7))
	require.Equal(t, 999, s.Len())
}

func TestQuotientZeroSetIsFull(t *testing.T) {
	var s quotient.Set
	require.ErrorIs(t, s.AddHash(1), quotient.ErrFull)
	require.ErrorIs(t, s.Resize(1), quotient.ErrFull)
}

// A set that is resized gives the answers that it gave, and its rate follows from keys alone.
func TestQuotientResizeChangesNoAnswer(t *testing.T) {
	s := quotientNewSet(t, 1000, 0.01, 0)
	quotientFill(t, s, 0, 1000)
	answers := func() (yes []uint64) {
		for i := range uint64(20_000) {
			if s.ContainsHash(Good(2).At(i)) {
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
	quotientFill(t, s, 1000, 8000)
	require.InEpsilon(t, 8*rate, s.FalsePositiveRate(), 0.1)
}

// Parts, merged, are the set of all keys, byte by byte.
func TestQuotientMergeIsTheSetOfAllKeys(t *testing.T) {
	whole, a, b := quotientNewSet(t, 3000, 0.01, 2), quotientNewSet(t, 3000, 0.01, 2), quotientNewSet(t, 3000, 0.01, 2)
	quotientFill(t, whole, 0, 6000)
	quotientFill(t, whole, 1000, 1500)
	quotientFill(t, a, 0, 2500)
	quotientFill(t, b, 2500, 6000)
	quotientFill(t, b, 1000, 1500)
	before := Bytes(t, b)
	require.NoError(t, a.Merge(b))
	require.Equal(t, Bytes(t, whole), Bytes(t, a))
	require.Equal(t, before, Bytes(t, b))
	require.Equal(t, 6500, a.Len())

	require.NoError(t, b.Merge(b))
	require.Equal(t, 8000, b.Len())
	require.GreaterOrEqual(t, b.CountHash(quotientPresent(5000)), 2)
}

func TestQuotientSetMergeSaysWhy(t *testing.T) {
	a, b := quotientNewSet(t, 1000, 0.01, 0), quotientNewSet(t, 1000, 0.01, 0)
	quotientFill(t, a, 0, 900)
	quotientFill(t, b, 900, 1800)
	before := Bytes(t, a)
	require.ErrorIs(t, a.Merge(b), quotient.ErrFull)
	require.ErrorIs(t, a.Merge(quotientNewSet(t, 1100, 0.01, 0)), quotient.ErrUnlike)
	require.Equal(t, before, Bytes(t, a))
	require.NoError(t, a.Resize(2000))
	require.NoError(t, a.Merge(b))
	require.Equal(t, 1800, a.Len())
}

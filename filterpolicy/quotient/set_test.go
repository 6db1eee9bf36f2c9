package quotient_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/internal/filtertest"
	"github.com/siftkv/siftkv/filterpolicy/internal/settest"
	"github.com/siftkv/siftkv/filterpolicy/quotient"
)

func newSet(tb testing.TB, n int, rate float64, grow int) *quotient.Set {
	tb.Helper()
	s, err := quotient.New(n, rate, &quotient.Options{Grow: grow})
	require.NoError(tb, err)
	return s
}

var family = settest.With(quotient.New, nil)

func TestSet(t *testing.T) { settest.Suite(t, family) }

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
			want := s.FalsePositiveRate()
			got, sigma := settest.Rate(s.ContainsHash, settest.Share(100_000), want)
			require.InDelta(t, want, got, 4*sigma)
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

// One key that is added nine times blocks the whole of a well-known library's filter. Here it
// may come ever so often and blocks nothing.
func TestFaultOneKeyBlocksTheFilter(t *testing.T) {
	times := settest.Share(200_000)
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

func TestZeroSetIsFull(t *testing.T) {
	var s quotient.Set
	require.ErrorIs(t, s.AddHash(1), quotient.ErrFull)
	require.ErrorIs(t, s.Resize(1), quotient.ErrFull)
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
	before := settest.Bytes(t, b)
	require.NoError(t, a.Merge(b))
	require.Equal(t, settest.Bytes(t, whole), settest.Bytes(t, a))
	require.Equal(t, before, settest.Bytes(t, b))
	require.Equal(t, 6500, a.Len())

	require.NoError(t, b.Merge(b))
	require.Equal(t, 8000, b.Len())
	require.GreaterOrEqual(t, b.CountHash(present(5000)), 2)
}

func TestSetMergeSaysWhy(t *testing.T) {
	a, b := newSet(t, 1000, 0.01, 0), newSet(t, 1000, 0.01, 0)
	fill(t, a, 0, 900)
	fill(t, b, 900, 1800)
	before := settest.Bytes(t, a)
	require.ErrorIs(t, a.Merge(b), quotient.ErrFull)
	require.ErrorIs(t, a.Merge(newSet(t, 1100, 0.01, 0)), quotient.ErrUnlike)
	require.Equal(t, before, settest.Bytes(t, a))
	require.NoError(t, a.Resize(2000))
	require.NoError(t, a.Merge(b))
	require.Equal(t, 1800, a.Len())
}

package keys

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestZetaIsTheSum(t *testing.T) {
	for _, n := range []int{1, 2, 999, 1000, 1001, 5000, 200_000} {
		sum := 0.0
		for i := 1; i <= n; i++ {
			sum += math.Pow(float64(i), -Theta)
		}
		require.InDelta(t, sum, zeta(n, Theta), 1e-9, n)
	}
}

// TestZipfFollowsTheLaw holds the most popular ranks, which the method of Gray et al.
// draws exactly, and the whole upper half against their probabilities, within five
// standard deviations.
func TestZipfFollowsTheLaw(t *testing.T) {
	const n, draws = 10_000, 400_000
	z, r := NewZipf(n, Theta), NewRandom(1, 1)
	var first, second, upper float64
	for range draws {
		switch rank := z.Draw(r.Float()); {
		case rank < 0 || rank >= n:
			t.Fatalf("rank %d", rank)
		case rank == 0:
			first++
		case rank == 1:
			second++
		case rank >= n/2:
			upper++
		}
	}
	within := func(p, got float64) {
		t.Helper()
		require.InDelta(t, p*draws, got, 5*math.Sqrt(draws*p*(1-p)))
	}
	within(1/zeta(n, Theta), first)
	within(math.Pow(2, -Theta)/zeta(n, Theta), second)
	p := 1 - zeta(n/2, Theta)/zeta(n, Theta)
	require.InEpsilon(t, p, upper/draws, 0.05, "an approximation further down")
}

func TestPassesOfRandomNumbersDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	for pass := range uint64(100) {
		r := NewRandom(1, pass)
		for range 10 {
			seen[r.Next()] = true
			require.Less(t, r.Below(7), 7)
		}
	}
	require.Greater(t, len(seen), 995)
}

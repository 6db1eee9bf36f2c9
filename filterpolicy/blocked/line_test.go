package blocked

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Between the whole numbers theory stands in for the simulation that has just
// confirmed it: each number of probes is chosen where it is the smallest within 1 %
// of the next.
func TestProbesAreTheFewestWorthTheirTime(t *testing.T) {
	const keys = 1_000_000
	for b := minBits; b <= maxBits; b += 50 {
		units, _ := b.Units(keys, lineBits)
		lines, k := float64(units), probesFor(b)
		if k < MaxProbes {
			require.LessOrEqual(t, rate(keys, lines, k), 1.015*rate(keys, lines, k+1), "%s bits", b)
		}
		if k > 1 {
			require.Greater(t, rate(keys, lines, k-1), 1.005*rate(keys, lines, k), "%s bits", b)
		}
	}
}

// The bits of a key are the positions that the format states.
func TestPositions(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		h := random.Uint64()
		cells := make([]byte, 8*LineLen)
		fill(cells, []uint64{h}, MaxProbes)

		z := h ^ h>>32
		z *= 0xd6e8feb86659fd93
		z ^= z >> 32
		line, _ := bits.Mul64(z, 8)
		want := make([]byte, len(cells))
		for i := range 14 {
			u, shift := z*0x9e3779b97f4a7c15, 55-9*i
			if i >= 7 {
				u, shift = (z^z>>29)*0xc2b2ae3d27d4eb4f, 55-9*(i-7)
			}
			p := u >> shift % 512
			want[line*64+p/8] |= 1 << (p % 8)
		}
		require.Equal(t, want, cells)
	}
}

func TestTheoryAtTheEdges(t *testing.T) {
	require.InDelta(t, 0.0, rate(1, 1, 6), 1e-9)
	require.InEpsilon(t, math.Pow(1-math.Pow(511.0/512, 512), 1), rate(512, 1, 1), 1e-9)
	require.InEpsilon(t, rate(1e6, 19532, 6), rate(1e12, 19532e6, 6), 1e-3)
	full := rate(1024, 2, 14)
	require.True(t, full > 0.999 && full <= 1.0001, "%v", full)
}

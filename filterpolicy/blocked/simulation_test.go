package blocked

import (
	"flag"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

var simulate = flag.Bool("simulate", false, "write simulation.md anew")

const (
	simulatedKeys = 100_000
	leastBits     = 4
	mostBits      = 24
)

// simulatedRate fills the lines of a filter as a Builder does and returns the mean of its
// lines' false-positive rates: the share of set bits, to the power of the probes. That is
// exact for the filter at hand, so that one filter of some thousand lines says more than
// millions of probes.
func simulatedRate(keyBits spec.Bits, probes int) float64 {
	random := rand.New(rand.NewPCG(uint64(keyBits), uint64(probes)))
	hashes := make([]uint64, simulatedKeys)
	for i := range hashes {
		hashes[i] = random.Uint64()
	}
	lines, _ := keyBits.Units(len(hashes), lineBits)
	cells := make([]byte, lines*lineLen)
	fill(cells, hashes, probes)
	sum := 0.0
	for at := 0; at < len(cells); at += lineLen {
		set := 0
		for _, b := range cells[at : at+lineLen] {
			set += bits.OnesCount8(b)
		}
		sum += math.Pow(float64(set)/lineBits, float64(probes))
	}
	return sum / float64(lines)
}

// simulation returns the rates of all numbers of probes, by bits per key.
func simulation() map[int][]float64 {
	all := map[int][]float64{}
	for b := leastBits; b <= mostBits; b++ {
		for k := 1; k <= maxProbes; k++ {
			all[b] = append(all[b], simulatedRate(spec.Bits(b)*spec.One, k))
		}
	}
	return all
}

func report(all map[int][]float64) string {
	var s strings.Builder
	fmt.Fprintf(&s, `# False-positive rates of blocked filters, simulated

Per cent, for filters of %d keys, by bits per key and number of probes. The rate in bold
is that of the number of probes that a policy with so many bits per key takes: the smallest
that is within 1 %% of the best, so that a probe is not spent for less.

Written by `+"`go test ./filterpolicy/blocked -run Simulation -simulate`"+`; the seeds are fixed.

| bits |`, simulatedKeys)
	for k := 1; k <= maxProbes; k++ {
		fmt.Fprintf(&s, " %d |", k)
	}
	s.WriteString("\n|" + strings.Repeat("---:|", maxProbes+1) + "\n")
	for b := leastBits; b <= mostBits; b++ {
		fmt.Fprintf(&s, "| %d |", b)
		for i, rate := range all[b] {
			mark := ""
			if i+1 == probesFor(spec.Bits(b)*spec.One) {
				mark = "**"
			}
			fmt.Fprintf(&s, " %s%.3g%s |", mark, 100*rate, mark)
		}
		s.WriteString("\n")
	}
	return s.String()
}

// The committed table is what the code does.
func TestSimulation(t *testing.T) {
	all := simulation()
	text := report(all)
	if *simulate {
		require.NoError(t, os.WriteFile("simulation.md", []byte(text), 0o644))
	}
	want, err := os.ReadFile("simulation.md")
	require.NoError(t, err)
	require.Equal(t, string(want), text)

	// The random load of so few lines moves the smallest rates by some per cent; the
	// mean over all of them is steady.
	off, cells := 0.0, 0
	for b, rates := range all {
		for k, rate := range rates {
			model := modelRate(b, k+1)
			require.InEpsilon(t, rate, model, 0.1, "theory at %d bits, %d probes", b, k+1)
			off += math.Log(rate / model)
			cells++
		}
		chosen := probesFor(spec.Bits(b) * spec.One)
		require.LessOrEqual(t, rates[chosen-1], 1.05*slices.Min(rates), "%d bits", b)
	}
	require.InDelta(t, 0, off/float64(cells), 0.005)
}

func modelRate(keyBits, probes int) float64 {
	lines, _ := (spec.Bits(keyBits) * spec.One).Units(simulatedKeys, lineBits)
	return rate(simulatedKeys, float64(lines), probes)
}

// Between the whole numbers theory stands in for the simulation that has just confirmed it:
// each number of probes is chosen where it is the smallest within 1 % of the next.
func TestProbesAreTheFewestWorthTheirTime(t *testing.T) {
	const keys = 1_000_000
	for b := minBits; b <= maxBits; b += 50 {
		units, _ := b.Units(keys, lineBits)
		lines, k := float64(units), probesFor(b)
		if k < maxProbes {
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
		cells := make([]byte, 8*lineLen)
		fill(cells, []uint64{h}, maxProbes)

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

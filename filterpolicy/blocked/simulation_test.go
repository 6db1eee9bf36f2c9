package blocked_test

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/scale"
)

const (
	simulatedKeys = 100_000
	leastBits     = 4
	mostBits      = 24
)

// simulate returns the rates of a filter with so many bits per key, by number of
// probes. It fills the lines as a Builder does and takes the mean of their rates:
// the share of set bits, to the power of the probes. That is exact for the filter
// at hand, so that one filter of some thousand lines says more than millions of
// probes.
func simulate(keyBits int) (rates []float64) {
	for probes := 1; probes <= blocked.MaxProbes; probes++ {
		random := rand.New(rand.NewPCG(uint64(keyBits), uint64(probes)))
		hashes := make([]uint64, simulatedKeys)
		for i := range hashes {
			hashes[i] = random.Uint64()
		}
		sum, lines := 0.0, 0.0
		for line := range slices.Chunk(blocked.Fill(thousandths(keyBits), probes, hashes), blocked.LineLen) {
			set := 0
			for _, b := range line {
				set += bits.OnesCount8(b)
			}
			sum += math.Pow(float64(set)/(8*blocked.LineLen), float64(probes))
			lines++
		}
		rates = append(rates, sum/lines)
	}
	return rates
}

func thousandths(keyBits int) spec.Bits { return spec.Bits(keyBits) * spec.One }

// The table that chose the numbers of probes is what the code does, and theory
// agrees with it.
func TestGoldenSimulation(t *testing.T) {
	scale.OneGoroutine(t, "a simulation has no other")
	var table strings.Builder
	table.WriteString(heading())
	off, cells := 0.0, 0.0
	for b := leastBits; b <= mostBits; b++ {
		rates := simulate(b)
		table.WriteString(row(b, rates))
		for i, rate := range rates {
			// The random load of so few lines moves the smallest rates by some per
			// cent; the mean over all of them is steady.
			theory := blocked.TheoryOf(thousandths(b), i+1, simulatedKeys)
			require.InEpsilon(t, theory, rate, 0.1, "%d bits, %d probes", b, i+1)
			off += math.Log(rate / theory)
			cells++
		}
		chosen := rates[blocked.ProbesFor(thousandths(b))-1]
		require.LessOrEqual(t, chosen, 1.1*slices.Min(rates), "%d bits", b)
	}
	require.InDelta(t, 0, off/cells, 0.005)
	golden.File(t, "simulation.md", table.String())
}

func heading() string {
	var s strings.Builder
	fmt.Fprintf(&s, `# False-positive rates of blocked filters, simulated

Per cent, for filters of %d keys, by bits per key and number of probes. The rate in bold
is that of the number of probes that a policy with so many bits per key takes: the fewest
to which one more adds at most 1 %%, so that no probe is spent for less.

`+"`go test ./filterpolicy/blocked -run Golden -update`"+` writes this table; the seeds are fixed.

| bits |`, simulatedKeys)
	for k := range blocked.MaxProbes {
		fmt.Fprintf(&s, " %d |", k+1)
	}
	s.WriteString("\n|" + strings.Repeat("---:|", blocked.MaxProbes+1) + "\n")
	return s.String()
}

func row(keyBits int, rates []float64) string {
	var s strings.Builder
	fmt.Fprintf(&s, "| %d |", keyBits)
	for i, rate := range rates {
		mark := ""
		if i+1 == blocked.ProbesFor(thousandths(keyBits)) {
			mark = "**"
		}
		fmt.Fprintf(&s, " %s%.3g%s |", mark, 100*rate, mark)
	}
	return s.String() + "\n"
}

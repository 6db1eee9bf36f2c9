package conformance

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/scale"
)

// The tests named after faults hold what filter libraries in use were found to do
// wrong, for every family: go test -run Fault ./filterpolicy/...

// Mutated bytes make FastFilter/xorfilter panic.
func TestFaultPanicsOnMutatedEncodings(t *testing.T) {
	eachSpec(t, func(t *testing.T, spec string) {
		Damage(t, spec)
		Forgery(t, spec)
		Mutations(t, spec, Share(4000))
	})
}

// Pebble's Bloom filter says no to keys when its bytes are cut short.
func TestFaultTruncatedFilterSaysNo(t *testing.T) {
	eachSpec(t, func(t *testing.T, spec string) {
		name := Policy(t, spec).Name()
		probe, ok := filterpolicy.Probe(name)
		require.True(t, ok)
		for _, n := range []int{0, 1, 2, Share(100), Share(700)} {
			data := Build(t, spec, Good(1), n)
			for size := range data {
				_, err := filterpolicy.Decode(name, data[:size])
				require.ErrorIs(t, err, filterpolicy.ErrCorrupt, "%d of %d bytes, %d keys", size, len(data), n)
				for i := range uint64(n) {
					if !probe(data[:size], Good(1).At(i)) {
						require.Fail(t, "false negative", "%d of %d bytes, key %d of %d", size, len(data), i, n)
					}
				}
			}
		}
	})
}

// Pebble's Bloom filter hashes to 32 bits, of which ten million keys are a part that shows: its
// rate at 10 bits per key grows from 1.17 % to 1.36 %. Two million keys are enough to see it.
func TestFaultRateDriftsWithTheNumberOfKeys(t *testing.T) {
	const spec = "blocked:10"
	few, many, probes := 100_000, scale.Count(2_000_000, 10_000_000), 2_000_000
	var small Rate
	const filters = 10 // one alone is better or worse than the mean by a per cent
	for salt := range uint64(filters) {
		r := Measure(t, spec, Good(salt), few, probes/filters)
		small.Positives += r.Positives
		small.Probes += r.Probes
	}
	large := Measure(t, spec, Good(filters), many, probes)
	bound := 4 * math.Hypot(small.Sigma(small.FPR()), large.Sigma(small.FPR()))
	t.Logf("%.4f %% with %d keys, %.4f %% with %d; the bound is ±%.4f %%", 100*small.FPR(), few, 100*large.FPR(),
		many, 100*bound)
	require.InDelta(t, small.FPR(), large.FPR(), bound)
}

// Numbers that nobody hashed make parquet-go's filter say maybe to everything.
func TestFaultUnmixedHashesAreAllPositives(t *testing.T) {
	eachSpec(t, func(t *testing.T, spec string) {
		MixesInput(t, spec, max(2000, Share(10_000)), 20_000, 0.1)
	})
}

package cuckootable

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
)

// build adds random keys to a set's tables until one is refused, or until there are n.
func build(s Shape, n uint64, random *rand.Rand) (tables []*Table, added uint64) {
	tables = make([]*Table, s.Shards)
	for at := range tables {
		tables[at] = s.NewTable()
	}
	for ; added < n; added++ {
		if p := s.Place(random.Uint64()); tables[p.Shard].Add(p) != nil {
			break
		}
	}
	return tables, added
}

// What a set promises when it is made holds when it has all its keys.
func TestRateIsWhatWasPromised(t *testing.T) {
	scale.OneGoroutine(t, "tables in memory, of one goroutine")
	const n, probes = 20_000, 3_000_000
	for _, rate := range []float64{0.03, 0.01, 0.001} {
		random := rand.New(rand.NewPCG(1, math.Float64bits(rate)))
		s, err := NewShape(n, rate, DefaultSize, 0)
		require.NoError(t, err)
		tables, added := build(s, n, random)
		require.EqualValues(t, n, added)
		found := 0
		for range probes {
			if p := s.Place(random.Uint64()); tables[p.Shard].Copies(p) != 0 {
				found++
			}
		}
		expected := s.Rate(n)
		require.LessOrEqual(t, expected, rate)
		deviation := math.Sqrt(probes * expected * (1 - expected))
		require.InDelta(t, probes*expected, found, 5*deviation, "%+v", s)
	}
}

// About one set in a thousand refuses a key before it has all its keys.
func TestSetsAreHardlyEverFullBeforeTheirKeys(t *testing.T) {
	scale.OneGoroutine(t, "tables in memory, of one goroutine")
	random := rand.New(rand.NewPCG(3, 4))
	for _, n := range []uint64{1, 8, 20, 26, 50, 100, 300, 1000, 5000, 6000, 30_000} {
		trials, refused := min(2000, 600_000/int(n)), 0
		for trial := range trials {
			s, err := NewShape(n, []float64{0.02, 0.001, 1e-8}[trial%3], DefaultSize, 0)
			require.NoError(t, err)
			if _, added := build(s, n, random); added < n {
				refused++
			}
		}
		require.LessOrEqual(t, refused, 1+trials/500, "%d of %d sets of %d keys", refused, trials, n)
	}
}

// A set takes little more than its fingerprints.
func TestShapeIsSmall(t *testing.T) {
	for _, n := range []uint64{1000, 10_000, 1e6, 1e8, MaxKeys} {
		for _, rate := range []float64{0.02, 0.01, 1e-3, 1e-6, 2e-9} {
			s, err := NewShape(n, rate, DefaultSize, 0)
			require.NoError(t, err)
			require.NoError(t, s.Check())
			require.LessOrEqual(t, s.Size(), DefaultSize)
			require.LessOrEqual(t, s.Rate(n), rate)
			bitsPerKey := float64(s.Shards) * float64(s.Size()) * 8 / float64(n)
			require.Less(t, bitsPerKey, float64(s.Bits)/0.80, "%d keys at %g: %+v", n, rate, s)
			if s.Bits > minBits {
				shorter := Shape{Bits: s.Bits - 1, Shards: 1}
				shorter.fit(n, shorter.mostBuckets(DefaultSize))
				require.Greater(t, shorter.Rate(n), rate, "no bit more than needed")
			}
		}
	}
}

func TestNewShapeRefuses(t *testing.T) {
	for _, c := range []struct {
		n    uint64
		rate float64
		size int
	}{
		{0, 0.01, DefaultSize}, {MaxKeys + 1, 0.01, DefaultSize}, {10, 0, DefaultSize}, {10, 1, DefaultSize},
		{10, math.NaN(), DefaultSize}, {10, -1, DefaultSize}, {1000, 1e-10, DefaultSize}, {10, 0.01, 1023},
		{10, 0.01, maxShardSize + 1},
	} {
		_, err := NewShape(c.n, c.rate, c.size, 0)
		require.Error(t, err, "%+v", c)
	}
}

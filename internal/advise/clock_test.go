package advise

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cache"
)

// The model of the cache hits where the cache does, access by access.
func TestTheClockIsTheCache(t *testing.T) {
	const blocks, size = 500, 1 << 10
	for _, there := range []int{8, 40, 100, 400, 600} {
		real := cache.New(int64(there) * size)
		slots := make([]cache.Slot, blocks)
		sizes := make([]float64, blocks)
		for i := range sizes {
			sizes[i] = size
		}
		c := newClock(int64(there)*size, sizes, 1)
		random := rand.New(rand.NewPCG(1, uint64(there)))
		zipf := rand.NewZipf(random, 1.1, 4, blocks-1)
		hits := 0
		for i := range 20_000 {
			block := int32(zipf.Uint64())
			_, hit := real.Pin(&slots[block])
			if hit {
				slots[block].Unpin()
				hits++
			} else if real.Reserve(uint64(block), &slots[block], size, nil) != nil {
				slots[block].Publish()
				slots[block].Unpin()
			}
			require.Equal(t, hit, c.read(block), "cache of %d blocks, access %d", there, i)
		}
		require.Positive(t, hits)
		real.Release()
	}
}

// A block that is too large is never kept, and blocks of all sizes fit together.
func TestTheClockKeepsToItsSize(t *testing.T) {
	sizes := make([]float64, 200)
	random := rand.New(rand.NewPCG(3, 4))
	for i := range sizes {
		sizes[i] = float64(100 + random.IntN(3000))
	}
	c := newClock(10_000, sizes, 1)
	for range 10_000 {
		block := int32(random.IntN(len(sizes)))
		hit := c.read(block)
		require.LessOrEqual(t, c.used, c.capacity)
		if sizes[block] > 2500 {
			require.False(t, hit)
			require.Equal(t, gone, c.state[block])
		}
	}
	used, n := 0.0, 0
	for i, state := range c.state {
		if state != gone {
			used, n = used+sizes[i], n+1
		}
	}
	require.InDelta(t, c.used, used, 1e-6)
	require.Equal(t, c.count, n)
}

package cuckootable

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// Redis adds little to a shard of the default size: its allocator has a class that just holds one.
func TestShardsFitTheAllocator(t *testing.T) {
	redistest.RequireReal(t)
	server := redistest.Start(t)
	for _, c := range []struct{ rate, bits float64 }{{0.01, 11.8}, {0.001, 15.5}} {
		const n = 1_000_000
		s, err := NewShape(n, c.rate, DefaultSize, 0)
		require.NoError(t, err)
		shard := store(t.Context(), t, server.Client(), s)
		bytes := server.MemoryUsage(t.Context(), shard.key)
		bitsPerKey := float64(s.Shards) * float64(bytes) * 8 / n
		t.Logf("rate %g: %+v, %d bytes of %d, %.2f bits per key", c.rate, s, bytes, s.Size(), bitsPerKey)
		require.Less(t, bitsPerKey, c.bits)
	}
}

package redisfilter

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/blocked"

	"github.com/siftkv/siftkv/redisfilter/internal/config"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// mostBytes is what a set that grows takes for each of the keys that it was made for, with all that Redis takes for
// its values. Few partitions, which differ by chance, have a second layer by then.
const mostBytes = 2.0

// TestBytesPerKeyAtCapacity counts the bytes of sets of many sizes.
func TestBytesPerKeyAtCapacity(t *testing.T) {
	t.Parallel()
	const overhead = 80 // of Redis, for a value and its key
	for _, n := range []int{1000, 1300, 1800, 2500, 2600, 2700, 2800, 4000, 5000, 7000, 10_000, 30_000, 100_000} {
		for _, growth := range []float64{2, 10} {
			r := config.Request{Kind: config.KindBlocked, Keys: n, Rate: 0.01, Growth: growth}
			r.PublicHash = true // the same every time
			cfg, err := config.New(r)
			require.NoError(t, err)
			require.NoError(t, cfg.Check())
			first, second := cfg.Layers[0], cfg.Layers[1]
			shards := make([][]byte, cfg.Partitions)
			for i := range shards {
				shards[i] = first.Blank()
			}
			for i := range n {
				spot := blocked.Locate(cfg.Hasher().Hash(key(i)))
				part, within := spot.Split(cfg.Partitions)
				_, line := first.Place(within)
				layout.SetBits(shards[part], line, spot, first.Probes)
			}
			bytes := 0
			for _, shard := range shards {
				bytes += len(shard) + overhead
				if first.Full(layout.Ones(shard[layout.HeaderLen:]) - first.Lines) {
					bytes += second.Shards * (second.Len() + overhead)
				}
			}
			require.LessOrEqual(t, float64(bytes)/float64(n), mostBytes, "%d keys, growth %v", n, growth)
		}
	}
}

// TestMemoryOfAGrowingSet asks a server.
func TestMemoryOfAGrowingSet(t *testing.T) {
	t.Parallel()
	redistest.RequireReal(t)
	ctx, server := t.Context(), startServer(t)
	c := openClient(t, server.Addr)
	for _, n := range []int{1000, 10_000} {
		s := wholeSet(t, c, fmt.Sprint("users", n), n, Options{Growth: 2, PublicHash: true})
		require.NoError(t, s.MAdd(ctx, keysTo(n)))
		bytes := int64(0)
		for _, shard := range shardsOf(t, s) {
			bytes += server.MemoryUsage(ctx, shard)
		}
		require.LessOrEqual(t, float64(bytes)/float64(n), mostBytes, "%d keys", n)
	}
}

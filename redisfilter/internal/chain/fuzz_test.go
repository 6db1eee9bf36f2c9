package chain

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/config"
)

// Whatever configuration is accepted, using it stays within bounds.
func FuzzConfig(f *testing.F) {
	cfg, err := config.New(config.Request{Kind: config.KindBlocked, Keys: 1000, Rate: 0.01, Growth: 10})
	require.NoError(f, err)
	f.Add(cfg.Encode(), uint64(0))
	cfg.Generation = "aaaaaaaaaa"
	f.Add(cfg.Encode(), ^uint64(0))
	f.Add([]byte(`{"version":1,"dropped":true}`), uint64(1))
	f.Add([]byte(`{"version":1,"asked":{"kind":"blocked"},"partitions":16777216,"layers":[{"shards":1}]}`), uint64(1))
	f.Fuzz(func(t *testing.T, data []byte, hash uint64) {
		cfg, err := config.Decode(data)
		if err != nil || cfg.Dropped || cfg.Asked.Kind != config.KindBlocked {
			return
		}
		require.LessOrEqual(t, cfg.Partitions, max(cfg.Asked.Keys, cfg.Asked.Partitions, 1))
		if cfg.Partitions > 1<<20 {
			return // as many as were asked for: the program's own wish
		}
		p := NewParts(nil, "users", cfg)
		seats := p.Seats(cfg.Generation, []uint64{hash, p.Hash(data)})
		seats[0].Learn(len(p.Layers))
		for layer := range p.KnownLayers(seats[0]) {
			key, line := p.ShardAt(seats[0], layer)
			require.NotEmpty(t, key)
			require.Less(t, line, p.Layers[layer].Lines)
			require.LessOrEqual(t, len(p.Layers[layer].Blank()), config.MaxShardBytes)
			p.Layers[layer].Full(p.Layers[layer].Lines)
			p.Layers[layer].Looks(hash)
		}
		p.adding(context.Background(), seats[0], 0, true)
		again, err := config.Decode(cfg.Encode())
		require.NoError(t, err)
		require.True(t, again.SameShape(cfg))
	})
}

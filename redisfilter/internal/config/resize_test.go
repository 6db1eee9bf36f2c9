package config

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// resizedConfig is one whose next generation has another shape.
func resizedConfig(t *testing.T) *Config {
	cfg, err := New(Request{Kind: KindBlocked, Keys: 1000, Rate: 0.01, ShardBytes: DefaultShard})
	require.NoError(t, err)
	cfg.Generation, cfg.Building = "aaaaaaaaaa", "bbbbbbbbbb"
	shape, err := cfg.ForNext(Request{Kind: KindBlocked, Keys: 90_000, Rate: 0.001, Growth: 3, ShardBytes: 2000})
	require.NoError(t, err)
	cfg.Next = shape.Size(cfg)
	return cfg
}

func TestConfigsOfTwoShapes(t *testing.T) {
	cfg := resizedConfig(t)
	cfg, err := Decode(cfg.Encode())
	require.NoError(t, err)
	first, next := *cfg, cfg.ShapeOf("bbbbbbbbbb")
	require.Same(t, cfg, cfg.ShapeOf("aaaaaaaaaa"))
	require.Equal(t, 90_000, next.Asked.Keys)
	require.Greater(t, len(next.Layers), 1)
	cfg.Use()
	require.NoError(t, cfg.Check())
	require.True(t, cfg.SameShape(next))
	require.True(t, cfg.ShapeOf("aaaaaaaaaa").SameShape(&first))

	same, err := cfg.ForNext(cfg.Asked)
	require.NoError(t, err)
	require.Same(t, cfg, same)
	require.LessOrEqual(t, len(cfg.Encode()), maxConfigLen)
}

// What a generation of another shape is said to be is checked as the configuration is.
func TestSpoiledSizesAreRefused(t *testing.T) {
	for field, value := range map[string]any{
		"layers": nil, "partitions": 1 << 24, "table": map[string]any{"bits": 8, "buckets": 2, "shards": 1},
		"asked": map[string]any{"kind": KindWindows, "keys": 90_000, "rate": 0.001}, "hello": 1,
	} {
		m := map[string]any{}
		require.NoError(t, json.Unmarshal(resizedConfig(t).Encode(), &m))
		m["next"].(map[string]any)[field] = value
		if field == "table" {
			delete(m["next"].(map[string]any), "partitions")
			delete(m["next"].(map[string]any), "layers")
		}
		data, err := json.Marshal(m)
		require.NoError(t, err)
		_, err = Decode(data)
		require.Error(t, err, field)
	}
}

// A cuckoo set that only grows writes what earlier releases read.
func TestSizesOfGrowingCuckooSetsStay(t *testing.T) {
	asked := Request{Kind: KindCuckoo, Keys: 1000, Rate: 0.001, ShardBytes: 8184, Partitions: 2}
	cfg, err := New(asked)
	require.NoError(t, err)
	cfg.Generation, cfg.Building, cfg.Wanted = "aaaaaaaaaa", "bbbbbbbbbb", 2000
	shape, err := cfg.ForNext(asked)
	require.NoError(t, err)
	cfg.Next = shape.Size(cfg)
	data, err := json.Marshal(cfg.Next)
	require.NoError(t, err)
	require.Regexp(t, `^{"keys":2000,"table":{"bits":\d+,"buckets":\d+,"shards":2}}$`, string(data))
	cfg, err = Decode(cfg.Encode())
	require.NoError(t, err)
	require.Equal(t, asked.resized(2000), cfg.ShapeOf("bbbbbbbbbb").Asked)
}

package redisfilter

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

func TestConfigRoundTrip(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		r.PublicHash = rapid.Bool().Draw(t, "public")
		cfg, err := newConfig(r)
		if err != nil {
			return
		}
		generation := rapid.SampledFrom([]string{"", newGeneration()})
		cfg.Generation = generation.Draw(t, "generation")
		cfg.Building = generation.Draw(t, "building")
		cfg.Retiring = generation.Draw(t, "retiring")
		if cfg.check() != nil {
			return // a generation cannot be two things
		}
		data := cfg.encode()
		require.LessOrEqual(t, len(data), maxConfigLen)
		got, err := decodeConfig(data)
		require.NoError(t, err)
		require.True(t, got.sameShape(cfg))
		require.Equal(t, cfg.generations(), got.generations())
		require.Equal(t, cfg.hasher(), got.hasher())
		require.Equal(t, data, got.encode())
	})
}

func TestNewNamesDiffer(t *testing.T) {
	a, b := newGeneration(), newGeneration()
	require.True(t, validGeneration(a) && validGeneration(b))
	require.NotEqual(t, a, b)
	require.NotEqual(t, newSeed(), newSeed())
}

// spoiledConfigs are configurations that no program wrote.
func spoiledConfigs(t *testing.T) map[string][]byte {
	spoil := func(f func(m map[string]any)) []byte {
		m := map[string]any{}
		require.NoError(t, json.Unmarshal(goldenConfig(t).encode(), &m))
		f(m)
		data, err := json.Marshal(m)
		require.NoError(t, err)
		return data
	}
	set := func(field string, v any) []byte { return spoil(func(m map[string]any) { m[field] = v }) }
	layer := func(field string, v any) []byte {
		return spoil(func(m map[string]any) { m["layers"].([]any)[1].(map[string]any)[field] = v })
	}
	return map[string][]byte{
		"nothing":             nil,
		"null":                []byte("null"),
		"array":               []byte("[]"),
		"text":                []byte("hello"),
		"two":                 append(goldenConfig(t).encode(), "{}"...),
		"brace after":         append(goldenConfig(t).encode(), "}"...),
		"long":                bytes.Repeat([]byte(" "), maxConfigLen+1),
		"deep":                []byte(strings.Repeat("[", maxConfigLen)),
		"next version":        set("version", 2),
		"no version":          set("version", 0),
		"unknown field":       set("hello", 1),
		"kind":                spoil(func(m map[string]any) { m["asked"].(map[string]any)["kind"] = "tree" }),
		"short seed":          set("seed", "AAAA"),
		"no partitions":       set("partitions", 0),
		"negative partitions": set("partitions", -1),
		"many partitions":     set("partitions", maxPartitions),
		"no layers":           set("layers", []any{}),
		"layers null":         set("layers", nil),
		"generation":          set("generation", "../../../.."),
		"long generation":     set("generation", strings.Repeat("a", 11)),
		"used and retiring":   set("retiring", "aaaaaaaaaa"),
		"used and building":   set("building", "aaaaaaaaaa"),
		"no lines":            layer("lines", 0),
		"many lines":          layer("lines", 1<<30),
		"lines overflow":      layer("lines", 1<<58),
		"more lines than keys": spoil(func(m map[string]any) {
			m["partitions"], m["layers"].([]any)[0].(map[string]any)["lines"] = 20, 1000
		}),
		"no shards":     layer("shards", 0),
		"many shards":   layer("shards", 1<<40),
		"no probes":     layer("probes", 0),
		"many probes":   layer("probes", 1000),
		"no keys":       layer("keys", 0),
		"keys overflow": layer("keys", 1e30),
	}
}

func TestSpoiledConfigsAreRefused(t *testing.T) {
	for name, data := range spoiledConfigs(t) {
		_, err := decodeConfig(data)
		require.Error(t, err, name)
	}
}

// Whatever configuration is accepted, using it stays within bounds.
func FuzzConfig(f *testing.F) {
	cfg, err := newConfig(request{Kind: kindBlocked, Keys: 1000, Rate: 0.01, Growth: 10, ShardBytes: defaultShard})
	require.NoError(f, err)
	f.Add(cfg.encode(), uint64(0))
	cfg.Generation = "aaaaaaaaaa"
	f.Add(cfg.encode(), ^uint64(0))
	f.Add([]byte(`{"version":1,"dropped":true}`), uint64(1))
	f.Add([]byte(`{"version":1,"asked":{"kind":"blocked"},"partitions":16777216,"layers":[{"shards":1}]}`), uint64(1))
	f.Fuzz(func(t *testing.T, data []byte, hash uint64) {
		cfg, err := decodeConfig(data)
		if err != nil || cfg.Dropped || cfg.Asked.Kind != kindBlocked {
			return
		}
		require.LessOrEqual(t, cfg.Partitions, max(cfg.Asked.Keys, cfg.Asked.Partitions, 1))
		if cfg.Partitions > 1<<20 {
			return // as many as were asked for: the program's own wish
		}
		p := newPartitions(nil, "users", cfg)
		seats := p.seats(cfg.Generation, []uint64{hash, p.hash(data)})
		seats[0].learn(len(p.layers))
		for layer := range p.knownLayers(seats[0]) {
			key, line := p.shardAt(seats[0], layer)
			require.NotEmpty(t, key)
			require.Less(t, line, p.layers[layer].Lines)
			require.LessOrEqual(t, len(p.layers[layer].Blank()), maxShardBytes)
			p.layers[layer].Full(p.layers[layer].Lines)
			p.layers[layer].Looks(hash)
		}
		p.adding(context.Background(), seats[0], 0, true)
		again, err := decodeConfig(cfg.encode())
		require.NoError(t, err)
		require.True(t, again.sameShape(cfg))
	})
}

func TestNames(t *testing.T) {
	for _, name := range []string{"users", "a/b", "ключ", "a:b", "ünïcode/日本", strings.Repeat("x", maxName)} {
		require.NoError(t, checkName(name))
		require.Equal(t, slotOf(layout.PartitionPrefix(name, "1", "aaaaaaaaaa")),
			slotOf(layout.ShardKey(layout.PartitionPrefix(name, "1", "bbbbbbbbbb"), 3, 4)),
			"a partition is on one node")
	}
	for _, name := range []string{"", "a b", "a{b", "a}b", "a\nb", "a\tb", strings.Repeat("x", maxName+1)} {
		require.Error(t, checkName(name), name)
	}
}

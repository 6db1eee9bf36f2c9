package config

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
	"github.com/siftkv/siftkv/redisfilter/internal/nodes"
)

func TestConfigRoundTrip(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		r.PublicHash = rapid.Bool().Draw(t, "public")
		cfg, err := New(r)
		if err != nil {
			return
		}
		generation := rapid.SampledFrom([]string{"", NewGeneration()})
		cfg.Generation = generation.Draw(t, "generation")
		cfg.Building = generation.Draw(t, "building")
		cfg.Retiring = generation.Draw(t, "retiring")
		if cfg.Check() != nil {
			return // a generation cannot be two things
		}
		data := cfg.Encode()
		require.LessOrEqual(t, len(data), maxConfigLen)
		got, err := Decode(data)
		require.NoError(t, err)
		require.True(t, got.SameShape(cfg))
		require.Equal(t, cfg.Generations(), got.Generations())
		require.Equal(t, cfg.Hasher(), got.Hasher())
		require.Equal(t, data, got.Encode())
	})
}

func TestNewNamesDiffer(t *testing.T) {
	a, b := NewGeneration(), NewGeneration()
	require.True(t, validGeneration(a) && validGeneration(b))
	require.NotEqual(t, a, b)
	require.NotEqual(t, goldenRequest(t).Seed, goldenRequest(t).Seed)
}

func goldenRequest(t *testing.T) *Config {
	cfg, err := New(Request{Kind: KindBlocked, Keys: 1000, Rate: 0.01, Growth: 10, Partitions: 2})
	require.NoError(t, err)
	return cfg
}

func goldenConfig(t *testing.T) *Config {
	cfg := goldenRequest(t)
	cfg.Generation, cfg.Building, cfg.Retiring = "aaaaaaaaaa", "bbbbbbbbbb", "2222222222"
	return cfg
}

// spoiledConfigs are configurations that no program wrote.
func spoiledConfigs(t *testing.T) map[string][]byte {
	spoil := func(f func(m map[string]any)) []byte {
		m := map[string]any{}
		require.NoError(t, json.Unmarshal(goldenConfig(t).Encode(), &m))
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
		"two":                 append(goldenConfig(t).Encode(), "{}"...),
		"brace after":         append(goldenConfig(t).Encode(), "}"...),
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
		"lines overflow":      layer("lines", int64(1<<58)),
		"more lines than keys": spoil(func(m map[string]any) {
			m["partitions"], m["layers"].([]any)[0].(map[string]any)["lines"] = 20, 1000
		}),
		"no shards":     layer("shards", 0),
		"many shards":   layer("shards", int64(1<<40)),
		"no probes":     layer("probes", 0),
		"many probes":   layer("probes", 1000),
		"no keys":       layer("keys", 0),
		"keys overflow": layer("keys", 1e30),
	}
}

func TestSpoiledConfigsAreRefused(t *testing.T) {
	for name, data := range spoiledConfigs(t) {
		_, err := Decode(data)
		require.Error(t, err, name)
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{"users", "a/b", "ключ", "a:b", "ünïcode/日本", strings.Repeat("x", MaxName)} {
		require.NoError(t, Stored{Name: name}.CheckName())
		require.Equal(t, nodes.Slot(layout.PartitionPrefix(name, "1", "aaaaaaaaaa")),
			nodes.Slot(layout.ShardKey(layout.PartitionPrefix(name, "1", "bbbbbbbbbb"), 3, 4)),
			"a partition is on one node")
	}
	for _, name := range []string{"", "a b", "a{b", "a}b", "a\nb", "a\tb", strings.Repeat("x", MaxName+1)} {
		require.Error(t, Stored{Name: name}.CheckName(), name)
	}
}

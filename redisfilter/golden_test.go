package redisfilter

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/redisfilter/internal/config"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// goldenFile compares what Redis keeps with a file. Programs of other versions read these bytes.
func goldenFile(t *testing.T, name string, data []byte) {
	golden.File(t, filepath.Join("testdata", name), data)
}

func goldenConfig(t *testing.T) *config.Config {
	cfg, err := config.New(config.Request{
		Kind: config.KindBlocked, Keys: 1000, Rate: 0.01, Growth: 10, Partitions: 2, ShardBytes: config.DefaultShard,
	})
	require.NoError(t, err)
	cfg.Seed = []byte("0123456789abcdef")
	cfg.Generation, cfg.Building, cfg.Retiring = "aaaaaaaaaa", "bbbbbbbbbb", "2222222222"
	return cfg
}

func TestGoldenFormats(t *testing.T) {
	cfg := goldenConfig(t)
	goldenFile(t, "config.json", cfg.Encode())
	goldenFile(t, "tombstone.json", (&config.Config{Version: config.Version, Dropped: true}).Encode())
	l := cfg.Layers[0]
	goldenFile(t, "blank.shard", l.Blank())

	shards := [][]byte{l.Blank(), l.Blank()}
	hasher := cfg.Hasher()
	for _, key := range []string{"", "a", "user:1", "user:2", "\x00\xff", "ключ"} {
		spot := blocked.Locate(hasher.Hash([]byte(key)))
		part, within := spot.Split(cfg.Partitions)
		_, line := l.Place(within)
		for _, p := range layout.BitPositions(nil, spot, l.Probes) {
			shards[part][layout.LineOffset(line)+int(p/8)] |= 1 << (p % 8)
		}
	}
	goldenFile(t, "keys.shards", bytes.Join(shards, nil))
}

func TestKeysInRedisAreWhereTheyWere(t *testing.T) {
	prefix := layout.PartitionPrefix("users", "17", "aaaaaaaaaa")
	require.Equal(t, "sk:{users}", layout.ConfigKey("users"))
	require.Equal(t, "sk:{users}:aaaaaaaaaa:trusted", trustedKey("users", "aaaaaaaaaa"))
	require.Equal(t, "sk:{users/17}:aaaaaaaaaa:0", layout.ShardKey(prefix, 0, 0))
	require.Equal(t, "sk:{users/17}:aaaaaaaaaa:1:3", layout.ShardKey(prefix, 1, 3))
	require.Equal(t, "sk:{users/17}:aaaaaaaaaa:1:m0", layout.MarkerKey(prefix, 1, 0))
}

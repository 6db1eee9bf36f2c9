package redisfilter

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/property"
)

// goldenFile compares what Redis keeps with a file. Programs of other versions read these bytes.
func goldenFile(t *testing.T, name string, data []byte) {
	golden.File(t, filepath.Join("testdata", name), data)
}

func goldenConfig(t *testing.T) *config {
	cfg, err := newConfig(request{
		Kind: kindBlocked, Keys: 1000, Rate: 0.01, Growth: 10, Partitions: 2, ShardBytes: defaultShard,
	})
	require.NoError(t, err)
	cfg.Seed = []byte("0123456789abcdef")
	cfg.Generation, cfg.Building, cfg.Retiring = "aaaaaaaaaa", "bbbbbbbbbb", "2222222222"
	return cfg
}

func TestGoldenFormats(t *testing.T) {
	cfg := goldenConfig(t)
	goldenFile(t, "config.json", cfg.encode())
	goldenFile(t, "tombstone.json", (&config{Version: configVersion, Dropped: true}).encode())
	l := cfg.Layers[0]
	goldenFile(t, "blank.shard", l.blankShard())

	shards := [][]byte{l.blankShard(), l.blankShard()}
	hasher := cfg.hasher()
	for _, key := range []string{"", "a", "user:1", "user:2", "\x00\xff", "ключ"} {
		spot := blocked.Locate(hasher.hash([]byte(key)))
		part, within := spot.Split(cfg.Partitions)
		_, line := l.place(within)
		for _, p := range bitPositions(nil, spot, l.Probes) {
			shards[part][lineOffset(line)+int(p/8)] |= 1 << (p % 8)
		}
	}
	goldenFile(t, "keys.shards", bytes.Join(shards, nil))
}

func TestKeysInRedisAreWhereTheyWere(t *testing.T) {
	prefix := partitionPrefix("users", "17", "aaaaaaaaaa")
	require.Equal(t, "sk:{users}", configKey("users"))
	require.Equal(t, "sk:{users}:aaaaaaaaaa:trusted", trustedKey("users", "aaaaaaaaaa"))
	require.Equal(t, "sk:{users/17}:aaaaaaaaaa:0", shardKey(prefix, 0, 0))
	require.Equal(t, "sk:{users/17}:aaaaaaaaaa:1:3", shardKey(prefix, 1, 3))
	require.Equal(t, "sk:{users/17}:aaaaaaaaaa:1:m0", markerKey(prefix, 1, 0))
}

// A reader of single lines and a blocked.Set of all lines say the same of every key.
func TestLinesSayWhatALocalSetSays(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		lines := rapid.IntRange(1, 8).Draw(t, "lines")
		probes := rapid.IntRange(1, blocked.MaxProbes).Draw(t, "probes")
		l := layerShape{Keys: 1, Shards: 1, Lines: lines, Probes: probes}
		local, err := blocked.FromLines(make([]byte, lines*blocked.LineLen), l.Probes, 0, 1)
		require.NoError(t, err)
		shard := l.blankShard()
		hashes := rapid.SliceOfN(rapid.Uint64(), 0, 60).Draw(t, "hashes")
		for _, h := range hashes {
			local.AddHash(h)
			addTo(shard, l, h)
		}
		asked := append(rapid.SliceOfN(rapid.Uint64(), 50, 50).Draw(t, "others"), hashes...)
		exported, imported := bytes.Clone(shard), append(l.blankShard()[:headerLen], local.Lines()...)
		for at := headerLen; at < len(exported); at += blocked.LineLen {
			unfoldMark(exported[at:])
			foldMark(imported[at:])
			imported[at+markByte] |= markBit // BITOP OR with a shard
		}
		out, err := blocked.FromLines(exported[headerLen:], l.Probes, 0, 1)
		require.NoError(t, err)
		require.Equal(t, shard, imported, "an import leads to the bits that adds lead to")
		for i, h := range asked {
			a := askShard(shard, l, h)
			require.NotEqual(t, lost, a)
			if i >= 50 {
				require.Equal(t, present, a)
				require.True(t, out.ContainsHash(h))
			}
			require.Equal(t, a == present, out.ContainsHash(h))
			if a == absent {
				require.False(t, local.ContainsHash(h), "a shard knows no fewer keys than a set")
			}
		}
	})
}

func askShard(shard []byte, l layerShape, hash uint64) answer {
	spot := blocked.Locate(hash)
	_, within := spot.Split(1)
	_, line := l.place(within)
	at := lineOffset(line)
	if len(shard) < at {
		return ask(nil, spot, l.Probes)
	}
	return ask(shard[at:min(len(shard), at+blocked.LineLen)], spot, l.Probes)
}

// A shard that was cut, or that an add to nothing left, says no of nothing.
func TestWhatIsLostSaysNoOfNothing(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		l := layerShape{Keys: 1, Shards: 1, Lines: rapid.IntRange(1, 8).Draw(t, "lines"), Probes: 7}
		shard := make([]byte, l.shardLen())
		for _, h := range rapid.SliceOfN(rapid.Uint64(), 0, 300).Draw(t, "hashes") {
			addTo(shard, l, h)
		}
		h := rapid.Uint64().Draw(t, "asked")
		require.NotEqual(t, absent, askShard(shard, l, h))
		cut := rapid.IntRange(0, len(shard)).Draw(t, "cut")
		require.NotEqual(t, absent, askShard(shard[:cut], l, h))
	})
}

// Redis counts the bits of a byte from the highest.
func TestRedisBit(t *testing.T) {
	for p := range 512 {
		var line [blocked.LineLen]byte
		line[p/8] |= 1 << (p % 8)
		q := redisBit(p)
		require.NotZero(t, line[q/8]&(0x80>>(q%8)))
	}
}

func TestLayersOf(t *testing.T) {
	header := make([]byte, headerLen)
	for mask, want := range map[uint32]int{0: 1, 1: 2, 2: 1, 3: 3, 0b1011: 3, 0xffff_ffff: 16} {
		binary.LittleEndian.PutUint32(header[layersAt:], mask)
		require.Equal(t, want, layersOf(header, maxLayers), "%b", mask)
	}
	for layer := 1; layer < maxLayers; layer++ {
		bit := layerBit(layer)
		header := make([]byte, headerLen)
		header[bit/8] |= 0x80 >> (bit % 8)
		require.Equal(t, uint32(1)<<(layer-1), binary.LittleEndian.Uint32(header[layersAt:]))
	}
}

func FuzzHeader(f *testing.F) {
	l := layerShape{Keys: 1, Shards: 1, Lines: 3, Probes: 7}
	f.Add(l.blankShard(), uint64(1))
	f.Add([]byte("sift"), uint64(2))
	f.Add([]byte{}, uint64(3))
	f.Fuzz(func(t *testing.T, data []byte, hash uint64) {
		if valid := l.validHeader(data); valid {
			n := layersOf(data, maxLayers)
			require.True(t, n >= 1 && n <= maxLayers)
			require.True(t, bytes.HasPrefix(data, l.blankShard()[:layersAt]))
		}
		a := askShard(data, l, hash)
		if len(data) < headerLen+l.Lines*blocked.LineLen && len(data) <= headerLen {
			require.Equal(t, lost, a)
		}
	})
}

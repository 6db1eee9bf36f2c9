package redisfilter

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/cuckootable"
)

// What programs of all releases must read.
func TestCuckooConfigNeverChanges(t *testing.T) {
	const golden = `{"version":1,"asked":{"kind":"cuckoo","keys":100000,"rate":0.001,"shard_bytes":8184},` +
		`"seed":"AQIDBAUGBwgJCgsMDQ4PEA==","partitions":23,"table":{"bits":13,"buckets":1234,"shards":23},` +
		`"generation":"aaaaaaaaaa"}`
	cfg, err := newCuckooConfig(request{Kind: kindCuckoo, Keys: 100_000, Rate: 0.001, ShardBytes: 8184})
	require.NoError(t, err)
	cfg.Seed = []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	cfg.Generation = "aaaaaaaaaa"
	require.Equal(t, golden, string(cfg.encode()))
	got, err := decodeConfig([]byte(golden))
	require.NoError(t, err)
	require.True(t, got.sameShape(cfg))
	cfg.Table.Bits++
	require.False(t, got.sameShape(cfg))
}

func TestSpoiledCuckooConfigsAreRefused(t *testing.T) {
	cfg, err := newCuckooConfig(request{Kind: kindCuckoo, Keys: 1000, Rate: 0.001, Partitions: 4, ShardBytes: 2000})
	require.NoError(t, err)
	for _, field := range []string{"bits", "buckets", "shards"} {
		for _, value := range []any{-1, 0, 7, 1 << 20, 1e30, "8", nil} {
			m := map[string]any{}
			require.NoError(t, json.Unmarshal(cfg.encode(), &m))
			m["table"].(map[string]any)[field] = value
			data, err := json.Marshal(m)
			require.NoError(t, err)
			_, err = decodeConfig(data)
			require.Error(t, err, "%s: %v", field, value)
		}
	}
}

// Whatever configuration is accepted, using it stays within bounds.
func FuzzCuckooConfig(f *testing.F) {
	cfg, err := newCuckooConfig(request{Kind: kindCuckoo, Keys: 1000, Rate: 0.001, Partitions: 4, ShardBytes: 2000})
	require.NoError(f, err)
	f.Add(cfg.encode(), uint64(0))
	f.Add([]byte(`{"version":1,"asked":{"kind":"cuckoo","keys":9},"partitions":1,`+
		`"table":{"bits":8,"buckets":2,"shards":1}}`), ^uint64(0))
	f.Fuzz(func(t *testing.T, data []byte, hash uint64) {
		cfg, err := decodeConfig(data)
		if err != nil || cfg.Dropped || cfg.Asked.Kind != kindCuckoo {
			return
		}
		tables := newTables(nil, "banned", cfg)
		p := tables.shape.Place(hash)
		require.Less(t, int(p.Shard), tables.count())
		table := tables.shape.NewTable()
		require.NoError(t, table.Add(p))
		require.Equal(t, 1, table.Copies(p))
		require.True(t, table.Remove(p))
		require.Len(t, tables.changes(cuckootable.Add, "aaaaaaaaaa", []uint64{hash, hash}, []int{0, 1}), 1)
	})
}

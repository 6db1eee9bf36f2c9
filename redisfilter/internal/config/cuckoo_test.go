package config

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// What programs of all releases must read.
func TestCuckooConfigNeverChanges(t *testing.T) {
	const golden = `{"version":1,"asked":{"kind":"cuckoo","keys":100000,"rate":0.001,"shard_bytes":8184},` +
		`"seed":"AQIDBAUGBwgJCgsMDQ4PEA==","partitions":23,"table":{"bits":13,"buckets":1234,"shards":23},` +
		`"generation":"aaaaaaaaaa"}`
	cfg, err := New(Request{Kind: KindCuckoo, Keys: 100_000, Rate: 0.001, ShardBytes: 8184})
	require.NoError(t, err)
	cfg.Seed = []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	cfg.Generation = "aaaaaaaaaa"
	require.Equal(t, golden, string(cfg.Encode()))
	got, err := Decode([]byte(golden))
	require.NoError(t, err)
	require.True(t, got.SameShape(cfg))
	cfg.Table.Bits++
	require.False(t, got.SameShape(cfg))
}

func TestSpoiledCuckooConfigsAreRefused(t *testing.T) {
	cfg, err := New(Request{Kind: KindCuckoo, Keys: 1000, Rate: 0.001, Partitions: 4, ShardBytes: 2000})
	require.NoError(t, err)
	for _, field := range []string{"bits", "buckets", "shards"} {
		for _, value := range []any{-1, 0, 7, 1 << 20, 1e30, "8", nil} {
			m := map[string]any{}
			require.NoError(t, json.Unmarshal(cfg.Encode(), &m))
			m["table"].(map[string]any)[field] = value
			data, err := json.Marshal(m)
			require.NoError(t, err)
			_, err = Decode(data)
			require.Error(t, err, "%s: %v", field, value)
		}
	}
}

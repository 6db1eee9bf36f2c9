package redisfilter

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/config"
)

// Whatever configuration is accepted, using it stays within bounds.
func FuzzCuckooConfig(f *testing.F) {
	asked := config.Request{Kind: config.KindCuckoo, Keys: 1000, Rate: 0.001, Partitions: 4, ShardBytes: 2000}
	cfg, err := config.New(asked)
	require.NoError(f, err)
	f.Add(cfg.Encode(), uint64(0))
	f.Add([]byte(`{"version":1,"asked":{"kind":"cuckoo","keys":9},"partitions":1,`+
		`"table":{"bits":8,"buckets":2,"shards":1}}`), ^uint64(0))
	f.Fuzz(func(t *testing.T, data []byte, hash uint64) {
		cfg, err := config.Decode(data)
		if err != nil || cfg.Dropped || cfg.Asked.Kind != config.KindCuckoo {
			return
		}
		tables := newTables(nil, "banned", cfg)
		p := tables.shape.Place(hash)
		require.Less(t, int(p.Shard), tables.count())
		table := tables.shape.NewTable()
		require.NoError(t, table.Add(p))
		require.Equal(t, 1, table.Copies(p))
		require.True(t, table.Remove(p))
		require.Len(t, tables.changes("aaaaaaaaaa", []uint64{hash, hash}, []int{0, 1}), 1)
	})
}

package redisfilter

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
)

// A gathering is a bulk of keys for a set that grows: their hashes, eight bytes each, since it is not
// known before the last which layers there must be.
type gathering struct {
	*partitions
	generation string
	hashes     []uint64
}

func (g *gathering) add(_ context.Context, hashes []uint64) error {
	g.hashes = append(g.hashes, hashes...)
	return nil
}

// finish fills one layer after the other. Other processes add to them meanwhile, so that a layer
// gets no more keys than it has room for when its turn comes.
func (g *gathering) finish(ctx context.Context) error {
	slices.Sort(g.hashes)
	left := make([][]uint64, g.count) // by partition
	for _, h := range slices.Compact(g.hashes) {
		part, _ := blocked.Locate(h).Split(g.count)
		left[part] = append(left[part], h)
	}
	known := g.knownOf(g.generation)
	for layer := range g.layers {
		var parts []int
		for part, hashes := range left {
			if len(hashes) == 0 {
				continue
			}
			parts = append(parts, part)
			if layer == 0 {
				continue
			}
			s := seat{prefix: g.prefix(part, g.generation), known: &known[part]}
			if err := g.grow(ctx, s, layer); err != nil {
				return err
			}
		}
		if err := g.fillLayer(ctx, layer, parts, left); err != nil {
			return err
		}
	}
	return nil
}

// fillLayer moves keys of some partitions from left into a layer, as many as it has room for; the last
// layer takes all.
func (g *gathering) fillLayer(ctx context.Context, layer int, parts []int, left [][]uint64) error {
	shape := g.layers[layer]
	var shards []mergeable
	err := g.client.forAll(ctx, len(parts), func(i int) (cmds []redis.Cmder) {
		prefix := g.prefix(parts[i], g.generation)
		for shard := range shape.Shards {
			cmds = append(cmds, redis.NewIntCmd(ctx, "bitcount", shardKey(prefix, layer, shard), headerLen, -1))
		}
		return cmds
	}, func(i int, cmds []redis.Cmder) error {
		part, keys := parts[i], 0.0
		for _, cmd := range cmds {
			keys += shape.keysOf(max(0, int(cmd.(*redis.IntCmd).Val())-shape.Lines))
		}
		n := len(left[part])
		if g.canGrow(layer) {
			n = min(n, max(0, shape.Keys-int(min(keys, maxKeys))))
		}
		prefix := g.prefix(part, g.generation)
		for shard, data := range g.shardsOf(shape, left[part][:n]) {
			shards = append(shards, mergeable{shardKey(prefix, layer, shard), data})
		}
		left[part] = left[part][n:]
		return nil
	})
	if err != nil {
		return err
	}
	return g.merge(ctx, shards)
}

// shardsOf returns the shards of one layer of a partition that some keys have bits in.
func (g *gathering) shardsOf(shape layerShape, hashes []uint64) map[int][]byte {
	shards := map[int][]byte{}
	for _, h := range hashes {
		spot := blocked.Locate(h)
		_, within := spot.Split(g.count)
		shard, line := shape.place(within)
		if shards[shard] == nil {
			shards[shard] = make([]byte, shape.shardLen())
		}
		setBits(shards[shard], line, spot, shape.Probes)
	}
	return shards
}

package chain

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// An Insert adds keys by their hashes.
type Insert func(ctx context.Context, hashes []uint64) error

// Bulk adds keys to a generation. They are gathered here and merged shard by shard: a trip for hundreds of shards,
// and no command for a key.
func (p *Parts) Bulk(generation string) (add Insert, finish func(context.Context) error) {
	if p.Grows() {
		g := &gathering{Parts: p, generation: generation}
		return g.add, g.finish
	}
	shards := make([][]byte, p.Count)
	add = func(_ context.Context, hashes []uint64) error {
		for _, h := range hashes {
			spot := blocked.Locate(h)
			part, within := spot.Split(p.Count)
			if shards[part] == nil {
				shards[part] = make([]byte, p.Layers[0].Len())
			}
			_, line := p.Layers[0].Place(within)
			layout.SetBits(shards[part], line, spot, p.Layers[0].Probes)
		}
		return nil
	}
	return add, func(ctx context.Context) error { return p.MergeFirst(ctx, generation, shards) }
}

// MergeFirst sets the bits of shards of layer 0, by partition, nil for none.
func (p *Parts) MergeFirst(ctx context.Context, generation string, shards [][]byte) error {
	var some []mergeable
	for part, data := range shards {
		if data != nil {
			some = append(some, mergeable{layout.ShardKey(p.Prefix(part, generation), 0, 0), data})
		}
	}
	return p.merge(ctx, some)
}

// A mergeable is bits to be set in a shard.
type mergeable struct {
	key  string
	data []byte
}

// mergeTime is how long a value lives that is merged into a shard, unless a process removes it.
const mergeTime = time.Minute

// merge sets bits in shards.
func (p *Parts) merge(ctx context.Context, shards []mergeable) error {
	suffix := ":" + rand.Text()
	return p.Conn.ForAll(ctx, len(shards), func(i int) []redis.Cmder {
		key := shards[i].key
		return []redis.Cmder{
			redis.NewStatusCmd(ctx, "set", key+suffix, shards[i].data, "px", mergeTime.Milliseconds()),
			redis.NewIntCmd(ctx, "bitop", "or", key, key, key+suffix),
			redis.NewIntCmd(ctx, "unlink", key+suffix),
		}
	}, func(i int, cmds []redis.Cmder) error {
		if cmds[2].(*redis.IntCmd).Val() == 0 { // evicted or expired, perhaps before the merge
			return fmt.Errorf("%w: what was to be added to %s was lost; redis may be short of memory",
				conn.ErrIncomplete, shards[i].key)
		}
		return nil
	})
}

// A gathering is a bulk of keys for a set that grows: their hashes, eight bytes each, since it is not known before
// the last which layers there must be.
type gathering struct {
	*Parts
	generation string
	hashes     []uint64
}

func (g *gathering) add(_ context.Context, hashes []uint64) error {
	g.hashes = append(g.hashes, hashes...)
	return nil
}

// finish fills one layer after the other. Other processes add to them meanwhile, so that a layer gets no more keys
// than it has room for when its turn comes.
func (g *gathering) finish(ctx context.Context) error {
	slices.Sort(g.hashes)
	left := make([][]uint64, g.Count) // by partition
	for _, h := range slices.Compact(g.hashes) {
		part, _ := blocked.Locate(h).Split(g.Count)
		left[part] = append(left[part], h)
	}
	known := g.KnownOf(g.generation)
	for layer := range g.Layers {
		var parts []int
		for part, hashes := range left {
			if len(hashes) == 0 {
				continue
			}
			parts = append(parts, part)
			if layer == 0 {
				continue
			}
			s := Seat{Prefix: g.Prefix(part, g.generation), Known: &known[part]}
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

// fillLayer moves keys of some partitions from left into a layer, as many as it has room for; the last layer takes
// all.
func (g *gathering) fillLayer(ctx context.Context, layer int, parts []int, left [][]uint64) error {
	shape := g.Layers[layer]
	var shards []mergeable
	err := g.Conn.ForAll(ctx, len(parts), func(i int) (cmds []redis.Cmder) {
		prefix := g.Prefix(parts[i], g.generation)
		for shard := range shape.Shards {
			key := layout.ShardKey(prefix, layer, shard)
			cmds = append(cmds, redis.NewIntCmd(ctx, "bitcount", key, layout.HeaderLen, -1))
		}
		return cmds
	}, func(i int, cmds []redis.Cmder) error {
		part, keys := parts[i], 0.0
		for _, cmd := range cmds {
			keys += shape.KeysOf(max(0, int(cmd.(*redis.IntCmd).Val())-shape.Lines))
		}
		n := len(left[part])
		if g.CanGrow(layer) {
			n = min(n, max(0, shape.Keys-int(keys)))
		}
		prefix := g.Prefix(part, g.generation)
		for shard, data := range g.shardsOf(shape, left[part][:n]) {
			shards = append(shards, mergeable{layout.ShardKey(prefix, layer, shard), data})
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
func (g *gathering) shardsOf(shape layout.Layer, hashes []uint64) map[int][]byte {
	shards := map[int][]byte{}
	for _, h := range hashes {
		spot := blocked.Locate(h)
		_, within := spot.Split(g.Count)
		shard, line := shape.Place(within)
		if shards[shard] == nil {
			shards[shard] = make([]byte, shape.Len())
		}
		layout.SetBits(shards[shard], line, spot, shape.Probes)
	}
	return shards
}

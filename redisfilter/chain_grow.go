package redisfilter

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// groupLen is how many shards one MSETNX makes, so that no command holds the server for long.
const groupLen = 63

// canGrow reports whether a chain may get another layer after the given one.
func (c *chains) canGrow(layer int) bool { return layer+1 < len(c.layers) }

// growFull makes the next layer of those chains whose last one is full.
func (c *chains) growFull(ctx context.Context, seats []seat, adds []adding) error {
	for _, a := range adds {
		if a.count == nil || a.layer+1 < c.knownLayers(seats[a.seat]) {
			continue
		}
		ones, err := a.count.Result()
		if err != nil {
			return err
		}
		if c.layers[a.layer].full(int(ones) - c.layers[a.layer].Lines) {
			if err := c.grow(ctx, seats[a.seat], a.layer+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// growIfFull is growFull for an add that a script made.
func (c *chains) growIfFull(ctx context.Context, s seat) error {
	layer := c.knownLayers(s) - 1
	if !c.canGrow(layer) || !c.layers[layer].looks(s.hash) {
		return nil
	}
	key, _ := c.shardAt(s, layer)
	a := adding{layer: layer, count: redis.NewIntCmd(ctx, "bitcount", key, headerLen, -1)}
	c.client.run(ctx, a.count)
	return c.growFull(ctx, []seat{s}, []adding{a})
}

// grow makes a layer of a chain, unless there is one or layer 0 was lost. Any number of processes may
// do so at once, end in the middle and be late: the bit that says that the layer exists is only ever
// set, after its shards were made and before anybody adds to them, and none is made once it is set. So
// nobody makes one again that was lost since.
func (c *chains) grow(ctx context.Context, s seat, layer int) error {
	shape := c.layers[layer]
	for group := 0; group*groupLen < shape.Shards; group++ {
		made, err := c.makeGroup(ctx, s, layer, group)
		if err != nil {
			return foreign(err, s.prefix, nil)
		}
		if !made {
			return nil
		}
	}
	key := shardKey(s.prefix, 0, 0)
	err := c.client.rdb.Do(ctx, "bitfield", key, "set", "u1", layerBit(layer), 1).Err()
	if err != nil {
		return foreign(err, key, nil)
	}
	s.learn(layer + 1)
	return nil
}

// makeGroup makes some shards of a layer, empty and whole, together with a marker, unless one of them
// is there. It says no if the layer exists. Whoever adds to the shards meanwhile touches what is
// watched, so that they are not made over what was added and lost.
func (c *chains) makeGroup(ctx context.Context, s seat, layer, group int) (made bool, err error) {
	shape := c.layers[layer]
	keys := []string{markerKey(s.prefix, layer, group)}
	values := []any{keys[0], ""}
	for shard := group * groupLen; shard < min(shape.Shards, (group+1)*groupLen); shard++ {
		key := shardKey(s.prefix, layer, shard)
		keys, values = append(keys, key), append(values, key, shape.newShard(key))
	}
	make := func(tx *redis.Tx) error {
		base := shardKey(s.prefix, 0, 0)
		header, err := tx.GetRange(ctx, base, 0, headerLen-1).Bytes()
		if err != nil || !c.layers[0].isShard(base, header) {
			return err
		}
		if there := layersOf(header, len(c.layers)); there > layer {
			s.learn(there)
			return nil
		}
		_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.MSetNX(ctx, values...).Err() })
		made = err == nil
		return err
	}
	for {
		if err = c.client.rdb.Watch(ctx, make, keys...); !errors.Is(err, redis.TxFailedErr) {
			return made, err
		}
	}
}

// layerKeys calls f with the keys of a layer, its markers among them.
func layerKeys(prefix string, layer int, shape layerShape, f func(key string, marker bool)) {
	for shard := range shape.Shards {
		f(shardKey(prefix, layer, shard), false)
	}
	for group := 0; layer > 0 && group*groupLen < shape.Shards; group++ {
		f(markerKey(prefix, layer, group), true)
	}
}

package chain

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// A State is what a survey tells of a shard.
type State struct {
	Key   string
	Shape layout.Layer
	Layer int
	Len   int // bytes
	Whole bool
	Ones  int   // bits of keys, if they were counted
	Err   error // why it is not the chain's
}

// Survey calls f with each shard of some chains, as many as their headers tell of. To count bits takes most of its
// time.
func (c *Chains) Survey(ctx context.Context, prefixes []string, count bool, f func(State) error) error {
	layers, err := c.layersOf(ctx, prefixes)
	if err != nil {
		return err
	}
	var all []State
	for i, prefix := range prefixes {
		for layer, shape := range c.Layers[:layers[i]] {
			for shard := range shape.Shards {
				all = append(all, State{Key: layout.ShardKey(prefix, layer, shard), Shape: shape, Layer: layer})
			}
		}
	}
	return c.Conn.ForAll(ctx, len(all), func(i int) []redis.Cmder {
		cmds := []redis.Cmder{
			redis.NewStringCmd(ctx, "getrange", all[i].Key, 0, layout.LineOffset(1)-1),
			redis.NewIntCmd(ctx, "strlen", all[i].Key),
		}
		if count {
			cmds = append(cmds, redis.NewIntCmd(ctx, "bitcount", all[i].Key, layout.HeaderLen, -1))
		}
		return cmds
	}, func(i int, cmds []redis.Cmder) error {
		all[i].judge(cmds)
		return f(all[i])
	})
}

// judge notes what the commands of a survey found: a shard's header with its first line, its length, and its bits.
func (s *State) judge(cmds []redis.Cmder) {
	begin, _ := cmds[0].(*redis.StringCmd).Bytes()
	s.Len = int(cmds[1].(*redis.IntCmd).Val())
	if len(cmds) > 2 {
		s.Ones = max(0, int(cmds[2].(*redis.IntCmd).Val())-s.Shape.Lines)
	}
	valid := s.Shape.Owns(s.Key, begin)
	s.Whole = valid && s.Len == s.Shape.Len() && begin[layout.HeaderLen+layout.MarkByte]&layout.MarkBit != 0
	if !valid && len(begin) >= layout.HeaderLen {
		s.Err = conn.Foreign(nil, s.Key, begin[:layout.HeaderLen])
	}
}

// Remove removes all values of some chains. The header of a chain, which tells of its layers, goes last, so that
// another Remove completes one that was broken off.
func (c *Chains) Remove(ctx context.Context, prefixes []string) error {
	layers, err := c.layersOf(ctx, prefixes)
	if err != nil {
		return err
	}
	var keys []string
	for i, prefix := range prefixes {
		if layers[i] == 0 {
			continue
		}
		for layer, shape := range slices.Backward(c.Layers[:min(layers[i]+1, len(c.Layers))]) { // one may be begun
			for shard := range shape.Shards {
				keys = append(keys, layout.ShardKey(prefix, layer, shard))
			}
			for group := 0; !c.Lazy && layer > 0 && group*groupLen < shape.Shards; group++ {
				keys = append(keys, layout.MarkerKey(prefix, layer, group))
			}
		}
	}
	return c.Conn.ForAll(ctx, len(keys), func(i int) []redis.Cmder {
		return []redis.Cmder{redis.NewIntCmd(ctx, "unlink", keys[i])}
	}, nil)
}

// layersOf returns how many layers chains have: as many as their headers tell of, one if there is no header, and none
// if a lazy chain has no values.
func (c *Chains) layersOf(ctx context.Context, prefixes []string) ([]int, error) {
	layers := make([]int, len(prefixes))
	for i := range layers {
		layers[i] = 1
	}
	if !c.Grows() {
		return layers, nil
	}
	return layers, c.Conn.ForAll(ctx, len(prefixes), func(i int) []redis.Cmder {
		return []redis.Cmder{getHeader(ctx, prefixes[i])}
	}, func(i int, cmds []redis.Cmder) error {
		key := keyAsked(cmds[0])
		switch header, _ := cmds[0].(*redis.StringCmd).Bytes(); {
		case c.Lazy && len(header) == 0:
			layers[i] = 0
		case c.Lazy && !c.Layers[0].Owns(key, header):
			return fmt.Errorf("%w: %s begins with %q", conn.ErrForeign, key, header)
		case c.Layers[0].ValidHeader(header):
			layers[i] = layout.LayersOf(header, len(c.Layers))
		}
		return nil
	})
}

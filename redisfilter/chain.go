package redisfilter

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// A chain is the layers of one partition, whose values share a prefix and a node of a cluster. It has
// one layer unless the set grows. Chains is how those of a set look.
type chains struct {
	client *Client
	layers []layout.Layer
	lazy   bool // values are made by adds and end by themselves: one that is missing holds no keys
}

// A seat is where a key is, or would be, in its chain.
type seat struct {
	prefix string // of the chain's values
	spot   blocked.Spot
	within uint64 // where in each layer
	hash   uint64
	once   bool           // an add tells whether the key was there, so it must not be sent again
	known  *atomic.Uint32 // layers of the chain that this process heard of last, beside the first
}

// knownLayers returns how many layers to ask for at first: what this process heard last.
func (c *chains) knownLayers(s seat) int { return min(int(s.known.Load())+1, len(c.layers)) }

// learn notes that a chain has so many layers: fewer than before if a failover forgot some.
func (s seat) learn(layers int) { s.known.Store(uint32(layers - 1)) }

// shardAt returns the key of the shard that a seat has in a layer, and its line there.
func (c *chains) shardAt(s seat, layer int) (key string, line int) {
	shard, line := c.layers[layer].Place(s.within)
	return layout.ShardKey(s.prefix, layer, shard), line
}

func (c *chains) grows() bool { return len(c.layers) > 1 }

// lookup asks for keys in one trip, or in two when a chain has grown since this process looked last.
// Where it cannot say, the answer is lost; an error then says why, unless a value is just not there.
func (c *chains) lookup(ctx context.Context, seats []seat) ([]layout.Answer, error) {
	answers := make([]layout.Answer, len(seats))
	if len(seats) == 1 && !c.grows() { // no need for anything but one command
		key, line := c.shardAt(seats[0], 0)
		cmd := getLine(ctx, key, line)
		c.client.run(ctx, cmd)
		var err error
		answers[0], err = c.judge(cmd, seats[0], 0)
		return answers, err
	}
	asks := make([]layerAsk, len(seats))
	for i := range asks {
		asks[i] = layerAsk{seat: i, to: c.knownLayers(seats[i])}
	}
	var failed error
	for len(asks) > 0 {
		more, err := c.lookupLayers(ctx, seats, asks, answers)
		failed = errors.Join(failed, err)
		asks = more
	}
	return answers, failed
}

// A layerAsk is the layers of a seat that are to be asked.
type layerAsk struct {
	seat, from, to int
	lines          []*redis.StringCmd // by layer
	header         *redis.StringCmd   // of layer 0; nil if the set does not grow
}

// lookupLayers asks for some layers and returns what there is to be asked beside.
func (c *chains) lookupLayers(ctx context.Context, seats []seat, asks []layerAsk,
	answers []layout.Answer) ([]layerAsk, error) {
	total := 0
	for _, a := range asks {
		total += a.to - a.from
	}
	lines := make([]*redis.StringCmd, 0, total)
	cmds := make([]redis.Cmder, 0, total+len(asks))
	headers := map[string]*redis.StringCmd{}
	for i := range asks {
		a := &asks[i]
		s := seats[a.seat]
		first := len(lines)
		for layer := a.from; layer < a.to; layer++ {
			key, line := c.shardAt(s, layer)
			cmd := getLine(ctx, key, line)
			lines, cmds = append(lines, cmd), append(cmds, cmd)
		}
		a.lines = lines[first:]
		if !c.grows() {
			continue
		}
		if headers[s.prefix] == nil {
			headers[s.prefix] = getHeader(ctx, s.prefix)
			cmds = append(cmds, headers[s.prefix])
		}
		a.header = headers[s.prefix]
	}
	c.client.run(ctx, cmds...)
	var more []layerAsk
	var failed error
	for _, a := range asks {
		next, err := c.combine(a, seats[a.seat], &answers[a.seat])
		if err != nil {
			failed = err
		}
		if next != nil {
			more = append(more, *next)
		}
	}
	return more, failed
}

// combine makes one answer of those of some layers and of what former layers said, and returns what
// there is to be asked beside.
func (c *chains) combine(a layerAsk, s seat, sum *layout.Answer) (more *layerAsk, failed error) {
	there, whole, failed := c.layersThere(a, s)
	if !whole {
		*sum = layout.Lost
	}
	for i, cmd := range a.lines[:max(0, min(a.to, there)-a.from)] {
		got, err := c.judge(cmd, s, a.from+i)
		if got == layout.Present {
			*sum = layout.Present
			return nil, nil
		}
		if got == layout.Lost {
			*sum, failed = layout.Lost, errors.Join(failed, err)
		}
	}
	if there > a.to {
		return &layerAsk{seat: a.seat, from: a.to, to: there}, failed
	}
	return nil, failed
}

// layersThere returns how many layers count: those that the header tells of, not those that the process
// remembers, as a failover may have forgotten some. The chain is not whole if its header is not.
func (c *chains) layersThere(a layerAsk, s seat) (there int, whole bool, err error) {
	if a.header == nil {
		return a.to, true, nil
	}
	header, err := a.header.Bytes()
	if c.lazy && err == nil && len(header) == 0 {
		return a.to, true, nil
	}
	if key := keyAsked(a.header); err != nil || !c.layers[0].Owns(key, header) {
		return a.to, false, foreign(err, key, header)
	}
	there = layout.LayersOf(header, len(c.layers))
	s.learn(there)
	// Its line is missing if a lazy one was made since, or is too short.
	missing := c.lazy && a.from == 0 && len(a.lines) > 0 && a.lines[0].Val() == ""
	return there, !missing, nil
}

// judge returns what the line of a key says, and why not if it was not read.
func (c *chains) judge(cmd *redis.StringCmd, s seat, layer int) (layout.Answer, error) {
	line, err := cmd.Bytes()
	if err != nil {
		key, _ := c.shardAt(s, layer)
		return layout.Lost, foreign(err, key, nil)
	}
	if c.lazy && len(line) == 0 {
		return layout.Absent, nil
	}
	return layout.Ask(line, s.spot, c.layers[layer].Probes), nil
}

// foreign says which value an error is about. Without an error it is about a header that is none:
// that of zeros and of nothing is a loss, another is not ours.
func foreign(err error, key string, header []byte) error {
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	for _, b := range header[:min(len(header), layout.LayersAt)] { // a late process may have set a layer's bit
		if b != 0 {
			return fmt.Errorf("%w: %s begins with %q", ErrForeign, key, header)
		}
	}
	return nil
}

// keyAsked returns the key that a command is about.
func keyAsked(cmd redis.Cmder) string { return cmd.Args()[1].(string) }

func getLine(ctx context.Context, key string, line int) *redis.StringCmd {
	at := layout.LineOffset(line)
	return redis.NewStringCmd(ctx, "getrange", key, at, at+blocked.LineLen-1)
}

// getHeader reads the header of layer 0.
func getHeader(ctx context.Context, prefix string) *redis.StringCmd {
	return redis.NewStringCmd(ctx, "getrange", layout.ShardKey(prefix, 0, 0), 0, layout.HeaderLen-1)
}

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
		if c.layers[a.layer].Full(int(ones) - c.layers[a.layer].Lines) {
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
	if !c.canGrow(layer) || !c.layers[layer].Looks(s.hash) {
		return nil
	}
	key, _ := c.shardAt(s, layer)
	a := adding{layer: layer, count: redis.NewIntCmd(ctx, "bitcount", key, layout.HeaderLen, -1)}
	c.client.run(ctx, a.count)
	return c.growFull(ctx, []seat{s}, []adding{a})
}

// grow makes a layer of a chain, unless there is one or layer 0 was lost. Any number of processes may
// do so at once, end in the middle and be late: the bit that says that the layer exists is only ever
// set, after its shards were made and before keys are added to them, and no shard is made once it is
// set. So a shard that was lost since is not made again.
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
	key := layout.ShardKey(s.prefix, 0, 0)
	err := c.client.rdb.Do(ctx, "bitfield", key, "set", "u1", layout.LayerBit(layer), 1).Err()
	if err != nil {
		return foreign(err, key, nil)
	}
	s.learn(layer + 1)
	return nil
}

// makeGroup makes some shards of a layer, empty and whole, together with a marker, unless one of them
// is there. It reports false if the layer exists. A process that adds to the shards meanwhile touches
// a key that is watched, so that they are not made over keys that were added and lost.
func (c *chains) makeGroup(ctx context.Context, s seat, layer, group int) (made bool, err error) {
	shape := c.layers[layer]
	keys := []string{layout.MarkerKey(s.prefix, layer, group)}
	values := []any{keys[0], ""}
	for shard := group * groupLen; shard < min(shape.Shards, (group+1)*groupLen); shard++ {
		key := layout.ShardKey(s.prefix, layer, shard)
		keys, values = append(keys, key), append(values, key, shape.New(key))
	}
	make := func(tx *redis.Tx) error {
		base := layout.ShardKey(s.prefix, 0, 0)
		header, err := tx.GetRange(ctx, base, 0, layout.HeaderLen-1).Bytes()
		if err != nil || !c.layers[0].Owns(base, header) {
			return err
		}
		if there := layout.LayersOf(header, len(c.layers)); there > layer {
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
func layerKeys(prefix string, layer int, shape layout.Layer, f func(key string, marker bool)) {
	for shard := range shape.Shards {
		f(layout.ShardKey(prefix, layer, shard), false)
	}
	for group := 0; layer > 0 && group*groupLen < shape.Shards; group++ {
		f(layout.MarkerKey(prefix, layer, group), true)
	}
}

// Package chain is sets of lines in Redis that grow by layers: it looks keys up, adds them, makes layers, and tells
// what there is. It knows nothing of generations; package layout has the bytes.
package chain

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// Chains say how keys lie in chains of layers. A chain is the layers of one partition, whose values share a prefix
// and a node of a cluster. It has one layer unless the set grows.
type Chains struct {
	Conn   *conn.Conn
	Layers []layout.Layer
	Lazy   bool // values are made by adds and end by themselves: one that is missing holds no keys
}

// A Seat is where a key is, or would be, in its chain.
type Seat struct {
	Prefix string // of the chain's values
	Spot   blocked.Spot
	Within uint64 // where in each layer
	Hash   uint64
	Known  *atomic.Uint32 // layers of the chain that this process heard of last, beside the first
	once   bool           // an add tells whether the key was there, so it must not be sent again
}

// KnownLayers returns how many layers to ask for at first: what this process heard last.
func (c *Chains) KnownLayers(s Seat) int { return min(int(s.Known.Load())+1, len(c.Layers)) }

// Learn notes how many layers a chain has: fewer than before if a failover forgot some.
func (s Seat) Learn(layers int) { s.Known.Store(uint32(layers - 1)) }

// ShardAt returns the key of the shard that a seat has in a layer, and its line there.
func (c *Chains) ShardAt(s Seat, layer int) (key string, line int) {
	shard, line := c.Layers[layer].Place(s.Within)
	return layout.ShardKey(s.Prefix, layer, shard), line
}

// Grows reports whether chains may get more than one layer.
func (c *Chains) Grows() bool { return len(c.Layers) > 1 }

// Lookup asks for keys in one trip, or in two when a chain has grown since this process looked last. Where it cannot
// say, the answer is lost; an error then says why, unless a value is just not there.
func (c *Chains) Lookup(ctx context.Context, seats []Seat) ([]layout.Answer, error) {
	answers := make([]layout.Answer, len(seats))
	if len(seats) == 1 && !c.Grows() { // no need for anything but one command
		key, line := c.ShardAt(seats[0], 0)
		cmd := getLine(ctx, key, line)
		c.Conn.Run(ctx, cmd)
		var err error
		answers[0], err = c.judge(cmd, seats[0], 0)
		return answers, err
	}
	asks := make([]layerAsk, len(seats))
	for i := range asks {
		asks[i] = layerAsk{seat: i, to: c.KnownLayers(seats[i])}
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
func (c *Chains) lookupLayers(ctx context.Context, seats []Seat, asks []layerAsk,
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
			key, line := c.ShardAt(s, layer)
			cmd := getLine(ctx, key, line)
			lines, cmds = append(lines, cmd), append(cmds, cmd)
		}
		a.lines = lines[first:]
		if !c.Grows() {
			continue
		}
		if headers[s.Prefix] == nil {
			headers[s.Prefix] = getHeader(ctx, s.Prefix)
			cmds = append(cmds, headers[s.Prefix])
		}
		a.header = headers[s.Prefix]
	}
	c.Conn.Run(ctx, cmds...)
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

// combine makes one answer of those of some layers and of what former layers said, and returns what there is to be
// asked beside.
func (c *Chains) combine(a layerAsk, s Seat, sum *layout.Answer) (more *layerAsk, failed error) {
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

// layersThere returns how many layers count: those that the header tells of, not those that the process remembers, as
// a failover may have forgotten some. The chain is not whole if its header is not.
func (c *Chains) layersThere(a layerAsk, s Seat) (there int, whole bool, err error) {
	if a.header == nil {
		return a.to, true, nil
	}
	header, err := a.header.Bytes()
	if c.Lazy && err == nil && len(header) == 0 {
		return a.to, true, nil
	}
	if key := keyAsked(a.header); err != nil || !c.Layers[0].Owns(key, header) {
		return a.to, false, conn.Foreign(err, key, header)
	}
	there = layout.LayersOf(header, len(c.Layers))
	s.Learn(there)
	// Its line is missing if a lazy one was made since, or is too short.
	missing := c.Lazy && a.from == 0 && len(a.lines) > 0 && a.lines[0].Val() == ""
	return there, !missing, nil
}

// judge returns what the line of a key says, and why not if it was not read.
func (c *Chains) judge(cmd *redis.StringCmd, s Seat, layer int) (layout.Answer, error) {
	line, err := cmd.Bytes()
	if err != nil {
		key, _ := c.ShardAt(s, layer)
		return layout.Lost, conn.Foreign(err, key, nil)
	}
	if c.Lazy && len(line) == 0 {
		return layout.Absent, nil
	}
	return layout.Ask(line, s.Spot, c.Layers[layer].Probes), nil
}

func keyAsked(cmd redis.Cmder) string { return cmd.Args()[1].(string) }

func getLine(ctx context.Context, key string, line int) *redis.StringCmd {
	at := layout.LineOffset(line)
	return redis.NewStringCmd(ctx, "getrange", key, at, at+blocked.LineLen-1)
}

func getHeader(ctx context.Context, prefix string) *redis.StringCmd {
	return redis.NewStringCmd(ctx, "getrange", layout.ShardKey(prefix, 0, 0), 0, layout.HeaderLen-1)
}

// groupLen is how many shards one MSETNX makes, so that no command holds the server for long.
const groupLen = 63

// CanGrow reports whether a chain may get another layer after the given one.
func (c *Chains) CanGrow(layer int) bool { return layer+1 < len(c.Layers) }

// growFull makes the next layer of those chains whose last one is full.
func (c *Chains) growFull(ctx context.Context, seats []Seat, adds []adding) error {
	for _, a := range adds {
		if a.count == nil || a.layer+1 < c.KnownLayers(seats[a.seat]) {
			continue
		}
		ones, err := a.count.Result()
		if err != nil {
			return err
		}
		if c.Layers[a.layer].Full(int(ones) - c.Layers[a.layer].Lines) {
			if err := c.grow(ctx, seats[a.seat], a.layer+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// growIfFull is growFull for an add that a script made.
func (c *Chains) growIfFull(ctx context.Context, s Seat) error {
	layer := c.KnownLayers(s) - 1
	if !c.CanGrow(layer) || !c.Layers[layer].Looks(s.Hash) {
		return nil
	}
	key, _ := c.ShardAt(s, layer)
	a := adding{layer: layer, count: redis.NewIntCmd(ctx, "bitcount", key, layout.HeaderLen, -1)}
	c.Conn.Run(ctx, a.count)
	return c.growFull(ctx, []Seat{s}, []adding{a})
}

// grow makes a layer of a chain, unless there is one or layer 0 was lost. Any number of processes may do so at once,
// end in the middle and be late. A bit says that the layer exists: it is set after the shards were made and before
// keys are added to them, and is never cleared. No shard is made once it is set. So a shard that was lost since is
// not made again.
func (c *Chains) grow(ctx context.Context, s Seat, layer int) error {
	shape := c.Layers[layer]
	for group := 0; group*groupLen < shape.Shards; group++ {
		made, err := c.makeGroup(ctx, s, layer, group)
		if err != nil {
			return conn.Foreign(err, s.Prefix, nil)
		}
		if !made {
			return nil
		}
	}
	key := layout.ShardKey(s.Prefix, 0, 0)
	err := c.Conn.RDB.Do(ctx, "bitfield", key, "set", "u1", layout.LayerBit(layer), 1).Err()
	if err != nil {
		return conn.Foreign(err, key, nil)
	}
	s.Learn(layer + 1)
	return nil
}

// makeGroup makes some shards of a layer, empty and whole, together with a marker, unless one of them is there. It
// reports false if the layer exists. A process that adds to the shards meanwhile touches a key that is watched, so
// that they are not made over keys that were added and lost.
func (c *Chains) makeGroup(ctx context.Context, s Seat, layer, group int) (made bool, err error) {
	shape := c.Layers[layer]
	keys := []string{layout.MarkerKey(s.Prefix, layer, group)}
	values := []any{keys[0], ""}
	for shard := group * groupLen; shard < min(shape.Shards, (group+1)*groupLen); shard++ {
		key := layout.ShardKey(s.Prefix, layer, shard)
		keys, values = append(keys, key), append(values, key, shape.New(key))
	}
	make := func(tx *redis.Tx) error {
		base := layout.ShardKey(s.Prefix, 0, 0)
		header, err := tx.GetRange(ctx, base, 0, layout.HeaderLen-1).Bytes()
		if err != nil || !c.Layers[0].Owns(base, header) {
			return err
		}
		if there := layout.LayersOf(header, len(c.Layers)); there > layer {
			s.Learn(there)
			return nil
		}
		_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.MSetNX(ctx, values...).Err() })
		made = err == nil
		return err
	}
	for {
		if err = c.Conn.RDB.Watch(ctx, make, keys...); !errors.Is(err, redis.TxFailedErr) {
			return made, err
		}
	}
}

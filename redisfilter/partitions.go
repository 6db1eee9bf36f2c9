package redisfilter

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// Partitions is the content of a Set: a chain in each of its partitions.
type partitions struct {
	chains
	hasher
	name  string
	count int
	known sync.Map // by generation: []atomic.Uint32, the layers of each chain that are known
}

func newPartitions(c *Client, name string, cfg *config) *partitions {
	layers := chains{client: c, layers: cfg.Layers}
	return &partitions{chains: layers, hasher: cfg.hasher(), name: name, count: cfg.Partitions}
}

// seats returns where hashes are in a generation.
func (p *partitions) seats(generation string, hashes []uint64) []seat {
	known := p.knownOf(generation)
	seats := make([]seat, len(hashes))
	for i, h := range hashes {
		spot := blocked.Locate(h)
		part, within := spot.Split(p.count)
		seats[i] = seat{prefix: p.prefix(part, generation), spot: spot, within: within, hash: h, known: &known[part]}
	}
	return seats
}

func (p *partitions) knownOf(generation string) []atomic.Uint32 {
	known, ok := p.known.Load(generation)
	if !ok {
		known, _ = p.known.LoadOrStore(generation, make([]atomic.Uint32, p.count))
	}
	return known.([]atomic.Uint32)
}

func (p *partitions) prefix(partition int, generation string) string {
	var digits [20]byte // on the stack, while Itoa would allocate
	return layout.PartitionPrefix(p.name, string(strconv.AppendInt(digits[:0], int64(partition), 10)), generation)
}

// blank makes layer 0 of each chain.
func (p *partitions) blank(ctx context.Context, generation string) error {
	return p.forAll(ctx, func(part int) []redis.Cmder {
		key := layout.ShardKey(p.prefix(part, generation), 0, 0)
		return []redis.Cmder{redis.NewStatusCmd(ctx, "set", key, p.layers[0].New(key))}
	}, nil)
}

// forAll runs the commands that belong to each partition, and calls then with those of each.
func (p *partitions) forAll(ctx context.Context, commands func(part int) []redis.Cmder,
	then func(part int, cmds []redis.Cmder) error) error {
	return p.client.forAll(ctx, p.count, commands, then)
}

// insert adds keys to one generation.
func (p *partitions) insert(ctx context.Context, generation string, hashes []uint64) error {
	found, err := p.add(ctx, p.seats(generation, hashes))
	if err != nil {
		return err
	}
	for _, f := range found {
		if !f.whole {
			return fmt.Errorf("%w: a part of generation %s was lost", ErrIncomplete, generation)
		}
	}
	return nil
}

// check returns an error unless each shard of the generation is there and whole: ErrForeign if one is another's.
func (p *partitions) check(ctx context.Context, generation string) error {
	var lost error
	err := p.survey(ctx, generation, false, func(s shardState) error {
		if s.err == nil && !s.whole && lost == nil {
			lost = fmt.Errorf("%w: %s is lost", ErrIncomplete, s.key)
		}
		return s.err
	})
	return cmp.Or(err, lost)
}

// A shardState is what a survey tells of a shard.
type shardState struct {
	key    string
	layer  int
	length int // bytes
	whole  bool
	ones   int // bits of keys, if they were counted
	err    error
}

// survey calls f with each shard of the generation. To count bits takes most of its time.
func (p *partitions) survey(ctx context.Context, generation string, count bool, f func(shardState) error) error {
	layers := make([]int, p.count)
	err := p.forAll(ctx, func(part int) []redis.Cmder {
		return p.surveyShard(ctx, p.prefix(part, generation), 0, 0, count)
	}, func(part int, cmds []redis.Cmder) error {
		s := p.stateOf(p.prefix(part, generation), 0, 0, cmds)
		layers[part] = 1
		if header, _ := cmds[0].(*redis.StringCmd).Bytes(); s.whole && p.grows() {
			layers[part] = layout.LayersOf(header, len(p.layers))
		}
		return f(s)
	})
	if err != nil || !p.grows() {
		return err
	}
	for part, n := range layers {
		prefix := p.prefix(part, generation)
		for layer := 1; layer < n; layer++ {
			if err := p.surveyLayer(ctx, prefix, layer, count, f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *chains) surveyLayer(ctx context.Context, prefix string, layer int, count bool,
	f func(shardState) error) error {
	var all []redis.Cmder
	for shard := range c.layers[layer].Shards {
		all = append(all, c.surveyShard(ctx, prefix, layer, shard, count)...)
	}
	c.client.run(ctx, all...)
	each := len(all) / c.layers[layer].Shards
	for shard := range c.layers[layer].Shards {
		cmds := all[each*shard:][:each]
		for _, cmd := range cmds {
			if err := cmd.Err(); err != nil {
				return foreign(err, layout.ShardKey(prefix, layer, shard), nil)
			}
		}
		if err := f(c.stateOf(prefix, layer, shard, cmds)); err != nil {
			return err
		}
	}
	return nil
}

// surveyShard returns the commands that tell of a shard: its header and first line, its length, and its bits if
// they are to be counted.
func (c *chains) surveyShard(ctx context.Context, prefix string, layer, shard int, count bool) []redis.Cmder {
	key := layout.ShardKey(prefix, layer, shard)
	cmds := []redis.Cmder{
		redis.NewStringCmd(ctx, "getrange", key, 0, layout.LineOffset(1)-1),
		redis.NewIntCmd(ctx, "strlen", key),
	}
	if count {
		cmds = append(cmds, redis.NewIntCmd(ctx, "bitcount", key, layout.HeaderLen, -1))
	}
	return cmds
}

func (c *chains) stateOf(prefix string, layer, shard int, cmds []redis.Cmder) shardState {
	s := shardState{key: layout.ShardKey(prefix, layer, shard), layer: layer}
	shape := c.layers[layer]
	begin, _ := cmds[0].(*redis.StringCmd).Bytes()
	s.length = int(cmds[1].(*redis.IntCmd).Val())
	if len(cmds) > 2 {
		s.ones = max(0, int(cmds[2].(*redis.IntCmd).Val())-shape.Lines)
	}
	valid := shape.Owns(s.key, begin)
	s.whole = valid && s.length == shape.Len() && begin[layout.HeaderLen+layout.MarkByte]&layout.MarkBit != 0
	if !valid && len(begin) >= layout.HeaderLen {
		s.err = foreign(nil, s.key, begin[:layout.HeaderLen])
	}
	return s
}

// discard removes all values of a generation.
func (p *partitions) discard(ctx context.Context, generation string) error {
	defer p.known.Delete(generation)
	layers := make([]int, p.count)
	for i := range layers {
		layers[i] = 1
	}
	if p.grows() {
		err := p.forAll(ctx, func(part int) []redis.Cmder {
			return []redis.Cmder{getHeader(ctx, p.prefix(part, generation))}
		}, func(part int, cmds []redis.Cmder) error {
			if header, _ := cmds[0].(*redis.StringCmd).Bytes(); p.layers[0].ValidHeader(header) {
				layers[part] = layout.LayersOf(header, len(p.layers))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return p.forAll(ctx, func(part int) []redis.Cmder {
		prefix := p.prefix(part, generation)
		var cmds []redis.Cmder
		for layer := range min(layers[part]+1, len(p.layers)) { // one may have been begun
			layerKeys(prefix, layer, p.layers[layer], func(key string, _ bool) {
				cmds = append(cmds, redis.NewIntCmd(ctx, "unlink", key))
			})
		}
		return cmds
	}, nil)
}

// slots returns the slot that each key is in, in every generation.
func (p *partitions) slots(hashes []uint64) []int {
	return slotsOfParts(p.client, p.name, len(hashes), func(i int) int {
		part, _ := blocked.Locate(hashes[i]).Split(p.count)
		return part
	})
}

// allSlots returns the slot of each partition.
func (p *partitions) allSlots() []int {
	return slotsOfParts(p.client, p.name, p.count, func(part int) int { return part })
}

// slotsOfParts returns the slots of n partitions of a set, of one that comes again computed once; or 0
// for all if there is no cluster, as nobody needs to tell them apart then.
func slotsOfParts(c *Client, name string, n int, partOf func(i int) int) []int {
	slots := make([]int, n)
	if !c.cluster {
		return slots
	}
	known := make(map[int]int, n)
	for i := range slots {
		part := partOf(i)
		slot, ok := known[part]
		if !ok {
			slot = slotOf(layout.PartitionPrefix(name, strconv.Itoa(part), ""))
			known[part] = slot
		}
		slots[i] = slot
	}
	return slots
}

// ask looks keys up in a generation.
func (p *partitions) ask(ctx context.Context, generation string, hashes []uint64) ([]layout.Answer, error) {
	return p.lookup(ctx, p.seats(generation, hashes))
}

// put adds keys to a generation; they are fresh no more if it had them.
func (p *partitions) put(ctx context.Context, generation string, _ bool, a *addition) (whole bool, err error) {
	add := p.add
	if a.isNew {
		add = p.addNew
	}
	found, err := add(ctx, p.seats(generation, a.hashes))
	if err != nil {
		return false, err
	}
	whole = true
	for i, f := range found {
		a.fresh[i] = a.fresh[i] && f.fresh
		whole = whole && f.whole
	}
	return whole, nil
}

package chain

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/redisfilter/internal/config"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
	"github.com/siftkv/siftkv/redisfilter/internal/nodes"
)

// Parts is a set of chains, one in each partition, in which each key has its place.
type Parts struct {
	Chains
	config.Hasher
	name  string
	Count int
	known sync.Map // by generation: []atomic.Uint32, the layers of each chain that are known
}

// NewParts returns the chains of a configuration.
func NewParts(c *conn.Conn, name string, cfg *config.Config) *Parts {
	layers := Chains{Conn: c, Layers: cfg.Layers}
	return &Parts{Chains: layers, Hasher: cfg.Hasher(), name: name, Count: cfg.Partitions}
}

// Seats returns where hashes are in a generation.
func (p *Parts) Seats(generation string, hashes []uint64) []Seat {
	known := p.KnownOf(generation)
	seats := make([]Seat, len(hashes))
	for i, h := range hashes {
		spot := blocked.Locate(h)
		part, within := spot.Split(p.Count)
		seats[i] = Seat{Prefix: p.Prefix(part, generation), Spot: spot, Within: within, Hash: h, Known: &known[part]}
	}
	return seats
}

// KnownOf returns the layers of each chain of a generation that this process heard of last, beside the first.
func (p *Parts) KnownOf(generation string) []atomic.Uint32 {
	known, ok := p.known.Load(generation)
	if !ok {
		known, _ = p.known.LoadOrStore(generation, make([]atomic.Uint32, p.Count))
	}
	return known.([]atomic.Uint32)
}

// Prefix is how the keys of a chain begin.
func (p *Parts) Prefix(partition int, generation string) string {
	var digits [20]byte // on the stack, while Itoa would allocate
	return layout.PartitionPrefix(p.name, string(strconv.AppendInt(digits[:0], int64(partition), 10)), generation)
}

// Blank makes layer 0 of each chain.
func (p *Parts) Blank(ctx context.Context, generation string) error {
	return p.Conn.ForAll(ctx, p.Count, func(part int) []redis.Cmder {
		key := layout.ShardKey(p.Prefix(part, generation), 0, 0)
		return []redis.Cmder{redis.NewStatusCmd(ctx, "set", key, p.Layers[0].New(key))}
	}, nil)
}

// Insert adds keys to one generation.
func (p *Parts) Insert(ctx context.Context, generation string, hashes []uint64) error {
	found, err := p.Add(ctx, p.Seats(generation, hashes))
	if err != nil {
		return err
	}
	for _, f := range found {
		if !f.Whole {
			return fmt.Errorf("%w: a part of generation %s was lost", conn.ErrIncomplete, generation)
		}
	}
	return nil
}

// Survey calls f with each shard of the generation. To count bits takes most of its time.
func (p *Parts) Survey(ctx context.Context, generation string, count bool, f func(State) error) error {
	return p.some(generation, func(prefixes []string) error { return p.Chains.Survey(ctx, prefixes, count, f) })
}

// Discard removes all values of a generation.
func (p *Parts) Discard(ctx context.Context, generation string) error {
	defer p.known.Delete(generation)
	return p.some(generation, func(prefixes []string) error { return p.Remove(ctx, prefixes) })
}

// some calls f with the prefixes of some chains, then of others, until it had all: a set may have millions.
func (p *Parts) some(generation string, f func(prefixes []string) error) error {
	const together = 256
	for first := 0; first < p.Count; first += together {
		var prefixes []string
		for part := first; part < min(first+together, p.Count); part++ {
			prefixes = append(prefixes, p.Prefix(part, generation))
		}
		if err := f(prefixes); err != nil {
			return err
		}
	}
	return nil
}

// Slots returns the slot that each key is in, in every generation.
func (p *Parts) Slots(hashes []uint64) []int {
	return SlotsOf(p.Conn, p.name, len(hashes), func(i int) int {
		part, _ := blocked.Locate(hashes[i]).Split(p.Count)
		return part
	})
}

// AllSlots returns the slot of each partition.
func (p *Parts) AllSlots() []int {
	return SlotsOf(p.Conn, p.name, p.Count, func(part int) int { return part })
}

// SlotsOf returns the slots of n partitions of a set, of one that comes again computed once; or 0 for all if there is
// no cluster, as the caller need not tell them apart then.
func SlotsOf(c *conn.Conn, name string, n int, partOf func(i int) int) []int {
	slots := make([]int, n)
	if !c.Cluster {
		return slots
	}
	known := make(map[int]int, n)
	for i := range slots {
		part := partOf(i)
		slot, ok := known[part]
		if !ok {
			slot = nodes.Slot(layout.PartitionPrefix(name, strconv.Itoa(part), ""))
			known[part] = slot
		}
		slots[i] = slot
	}
	return slots
}

// Ask looks keys up in a generation.
func (p *Parts) Ask(ctx context.Context, generation string, hashes []uint64) ([]layout.Answer, error) {
	return p.Lookup(ctx, p.Seats(generation, hashes))
}

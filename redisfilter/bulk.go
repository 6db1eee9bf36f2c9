package redisfilter

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// bulk adds keys to a generation. They are gathered here and merged shard by shard: a trip for hundreds
// of shards, and no command for a key.
func (p *partitions) bulk(generation string) (add insert, finish func(context.Context) error) {
	if p.grows() {
		g := &gathering{partitions: p, generation: generation}
		return g.add, g.finish
	}
	shards := make([][]byte, p.count)
	add = func(_ context.Context, hashes []uint64) error {
		for _, h := range hashes {
			spot := blocked.Locate(h)
			part, within := spot.Split(p.count)
			if shards[part] == nil {
				shards[part] = make([]byte, p.layers[0].Len())
			}
			_, line := p.layers[0].Place(within)
			layout.SetBits(shards[part], line, spot, p.layers[0].Probes)
		}
		return nil
	}
	return add, func(ctx context.Context) error { return p.mergeFirst(ctx, generation, shards) }
}

// mergeFirst sets the bits of shards of layer 0, by partition, nil for none.
func (p *partitions) mergeFirst(ctx context.Context, generation string, shards [][]byte) error {
	var some []mergeable
	for part, data := range shards {
		if data != nil {
			some = append(some, mergeable{layout.ShardKey(p.prefix(part, generation), 0, 0), data})
		}
	}
	return p.merge(ctx, some)
}

// A mergeable is bits to be set in a shard.
type mergeable struct {
	key  string
	data []byte
}

// mergeTime is how long a value lives that is merged into a shard, should nobody remove it.
const mergeTime = time.Minute

// merge sets bits in shards.
func (p *partitions) merge(ctx context.Context, shards []mergeable) error {
	suffix := ":" + rand.Text()
	return p.client.forAll(ctx, len(shards), func(i int) []redis.Cmder {
		key := shards[i].key
		return []redis.Cmder{
			redis.NewStatusCmd(ctx, "set", key+suffix, shards[i].data, "px", mergeTime.Milliseconds()),
			redis.NewIntCmd(ctx, "bitop", "or", key, key, key+suffix),
			redis.NewIntCmd(ctx, "unlink", key+suffix),
		}
	}, func(i int, cmds []redis.Cmder) error {
		if cmds[2].(*redis.IntCmd).Val() == 0 { // evicted or expired, perhaps before the merge
			return fmt.Errorf("%w: what was to be added to %s was lost; redis may be short of memory",
				ErrIncomplete, shards[i].key)
		}
		return nil
	})
}

// errGrows is returned for what only sets of one size can do.
var errGrows = programError{errors.New("a set that grows has no local counterpart: leave Options.Growth at 0")}

// errResizes is returned by an import that meets a load which changes the set's shape: the lines of a local
// set do not fit the generation that is loaded.
var errResizes = programError{errors.New("a load changes the shape of the set: wait for its end, and make the " +
	"local set again by Local")}

// Local returns an empty local set that Import takes. Fill it by its AddHash with what Set.Hash returns,
// or by Add if Options.PublicHash is set.
func (s *Set) Local() (*blocked.Set, error) {
	v, p, err := s.fixed()
	if err != nil {
		return nil, s.client.wrap(s.name, err)
	}
	lines := make([]byte, p.count*p.layers[0].Lines*blocked.LineLen)
	local, err := blocked.FromLines(lines, p.layers[0].Probes, 0, v.cfg.Asked.Keys)
	return local, s.client.wrap(s.name, err)
}

// fixed returns the view, and the content of a set of one size.
func (s *Set) fixed() (*view, *partitions, error) {
	v, err := s.current()
	if err != nil {
		return nil, nil, err
	}
	if p := v.content.(*partitions); !p.grows() {
		return v, p, nil
	}
	return nil, nil, errGrows
}

// Import adds all keys of a local set that Local returned, or Export: millions of keys in seconds, as
// lines are merged, not keys added. It promises what Add does. The set must not be a growing one, and
// must have been loaded, if by nothing else from a source without keys, or Import fails with ErrIncomplete.
// Import only reads local; nobody may add to it meanwhile.
func (s *Set) Import(ctx context.Context, local *blocked.Set) error {
	return s.client.wrap(s.name, s.importLines(ctx, local))
}

func (s *Set) importLines(ctx context.Context, local *blocked.Set) error {
	v, p, err := s.fixed()
	if err != nil {
		return err
	}
	shape := p.layers[0]
	perShard := shape.Lines * blocked.LineLen
	if len(local.Lines()) != p.count*perShard || local.Probes() != shape.Probes {
		return programError{fmt.Errorf("a local set of %d bytes, %d probes does not fit %d, %d: make it by Local",
			len(local.Lines()), local.Probes(), p.count*perShard, shape.Probes)}
	}
	shards := make([][]byte, p.count)
	for part := range shards {
		shards[part] = append(make([]byte, layout.HeaderLen, shape.Len()), local.Lines()[part*perShard:][:perShard]...)
		for at := layout.HeaderLen; at < len(shards[part]); at += blocked.LineLen {
			layout.FoldMark(shards[part][at:])
		}
	}
	for {
		if len(v.cfg.generations()) == 0 { // an add need not care, as a load finds its row
			return fmt.Errorf("%w: it was not loaded yet, and takes no keys before", ErrIncomplete)
		}
		if len(v.others) != 0 {
			return errResizes
		}
		if err := v.await(ctx); err != nil {
			return err
		}
		for _, g := range v.cfg.generations() {
			if err := p.mergeFirst(ctx, g, shards); err != nil {
				return err
			}
		}
		now, err := s.sureOfAll(ctx)
		if err != nil {
			return err
		}
		if v.sameGenerations(now) {
			return nil
		}
		if !v.cfg.sameShape(now.cfg) {
			if bytes.Equal(v.cfg.Seed, now.cfg.Seed) {
				return errResizes
			}
			return fmt.Errorf("%w: the set was made anew during the import", ErrDropped)
		}
		v = now
	}
}

// sureOfAll is sure for every partition.
func (s *Set) sureOfAll(ctx context.Context) (*view, error) {
	v, err := s.current()
	if err != nil {
		return nil, err
	}
	return s.settle(ctx, v, v.content.(*partitions).allSlots(), false)
}

// Export returns a local set of the keys that were added before the call, and perhaps of later ones.
// Ask it by its ContainsHash with what Set.Hash returns; or by Contains if Options.PublicHash is set. It fails
// if any part of the set could not say no. The set must not be a growing one.
func (s *Set) Export(ctx context.Context) (*blocked.Set, error) {
	local, err := s.export(ctx)
	return local, s.client.wrap(s.name, err)
}

func (s *Set) export(ctx context.Context) (*blocked.Set, error) {
	v, p, err := s.fixed()
	if err != nil {
		return nil, err
	}
	g := v.cfg.Generation
	if g == "" {
		return nil, fmt.Errorf("%w: it was not loaded yet", ErrIncomplete)
	}
	shape := p.layers[0]
	perShard := shape.Lines * blocked.LineLen
	lines := make([]byte, 0, p.count*perShard)
	keys := 0.0
	err = p.forAll(ctx, func(part int) []redis.Cmder {
		return []redis.Cmder{redis.NewStringCmd(ctx, "get", layout.ShardKey(p.prefix(part, g), 0, 0))}
	}, func(_ int, cmds []redis.Cmder) error {
		data, _ := cmds[0].(*redis.StringCmd).Bytes()
		if len(data) != shape.Len() || !shape.Owns(keyAsked(cmds[0]), data) {
			return s.missing(g)
		}
		ones := 0
		for at := layout.HeaderLen; at < len(data); at += blocked.LineLen {
			if data[at+layout.MarkByte]&layout.MarkBit == 0 {
				return s.missing(g)
			}
			ones += onesOf(data[at:at+blocked.LineLen]) - 1
			layout.UnfoldMark(data[at:])
		}
		keys += min(shape.KeysOf(ones), maxKeys)
		lines = append(lines, data[layout.HeaderLen:]...)
		return nil
	})
	if errors.Is(err, redis.Nil) {
		return nil, s.missing(g)
	}
	if err != nil {
		return nil, err
	}
	if _, err := s.settle(ctx, v, p.allSlots(), true); err != nil {
		return nil, err
	}
	return blocked.FromLines(lines, shape.Probes, int(math.Round(keys)), v.cfg.Asked.Keys)
}

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
		if g.canGrow(layer) {
			n = min(n, max(0, shape.Keys-int(min(keys, maxKeys))))
		}
		prefix := g.prefix(part, g.generation)
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
		_, within := spot.Split(g.count)
		shard, line := shape.Place(within)
		if shards[shard] == nil {
			shards[shard] = make([]byte, shape.Len())
		}
		layout.SetBits(shards[shard], line, spot, shape.Probes)
	}
	return shards
}

package config

import (
	"fmt"
	"math"
	"sort"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// Bounds of shapes.
const (
	MaxLayers     = 16
	DefaultShard  = 4048
	MaxShardBytes = 65488
	maxShards     = 1 << 20 // of a layer of a partition
	minRate       = 1e-6    // below it lines of 64 bytes do not suffice
	MinGrowing    = 1e-5    // of a set that grows: its layers share the rate
	minLayer      = 2.5e-8  // of a late layer; lines cannot do with much less
)

// markCost is how much lower a rate the lines are made for than was promised, for each probe. One bit of each line is
// its mark, and the bit next to it serves two positions. One probe in 256 meets that bit, which twice as many keys
// set as the others. So it is as if the keys were 512/510 as many, and each probe meets a set bit at most that much
// more often.
const markCost = 510.0 / 512

// tightening is the share of a layer's rate that the next layer has. The rates of all layers add up to the promised
// one, however many there are (P. S. Almeida and others, "Scalable Bloom Filters", 2007).
const tightening = 0.5

// overfill is the share of its rate that a set gives up which grows, since its partitions take whole numbers of keys,
// and since adds are under way when a process finds a layer full.
const overfill = 0.08

// shapes returns the number of partitions and the layers that a request needs.
func shapes(r Request) (partitions int, layers []layout.Layer, err error) {
	if r.Keys < 1 || int64(r.Keys) > layout.MaxKeys {
		return 0, nil, fmt.Errorf("a set is made for 1 to %d keys, not %d", int64(layout.MaxKeys), r.Keys)
	}
	if !(r.Rate >= minRate && r.Rate <= 0.5) {
		return 0, nil, fmt.Errorf("the rate of false positives is from %g to 0.5, not %g", minRate, r.Rate)
	}
	if r.Growth != 0 && !(r.Growth >= 2 && r.Growth <= 100) {
		return 0, nil, fmt.Errorf("a set's Growth is 0 or from 2 to 100, not %g", r.Growth)
	}
	if r.Growth != 0 && r.Rate < MinGrowing {
		return 0, nil, fmt.Errorf("a set that grows has a rate of %g or more, not %g", MinGrowing, r.Rate)
	}
	if r.Partitions < 0 || r.Partitions > 1<<16 {
		return 0, nil, fmt.Errorf("a set's Partitions are from 1 to %d, not %d", 1<<16, r.Partitions)
	}
	if r.ShardBytes < layout.HeaderLen+blocked.LineLen || r.ShardBytes > MaxShardBytes {
		return 0, nil, fmt.Errorf("a set's ShardBytes are from %d to %d, not %d",
			layout.HeaderLen+blocked.LineLen, MaxShardBytes, r.ShardBytes)
	}
	most := (r.ShardBytes - layout.HeaderLen) / blocked.LineLen
	rate := r.Rate
	if r.Growth != 0 {
		rate *= 1 - tightening - overfill
	}
	lines, probes, err := linesFor(r.Keys, rate)
	if err != nil {
		return 0, nil, err
	}
	partitions = max(1, r.Partitions, (lines+most-1)/most)
	if partitions > maxPartitions {
		return 0, nil, fmt.Errorf("%d keys need %d partitions: raise ShardBytes", r.Keys, partitions)
	}
	each := (lines + partitions - 1) / partitions
	first := layout.Layer{Keys: (r.Keys + partitions - 1) / partitions, Shards: 1, Lines: each, Probes: probes}
	if r.Growth != 0 {
		partitions, first = withRoom(r, partitions, first, most, rate)
	}
	layers = []layout.Layer{first}
	for r.Growth != 0 && len(layers) < MaxLayers {
		rate *= tightening
		next, ok := nextLayer(float64(first.Keys)*math.Pow(r.Growth, float64(len(layers))), rate, most)
		if !ok {
			break
		}
		layers = append(layers, next)
	}
	return partitions, layers, nil
}

// chance is how many standard deviations above the mean the keys of a partition may be before it needs a second
// layer. One partition in 1,000 has more. A second layer costs several times what the first does.
const chance = 3

// estimated is the share of its keys by which a shard may be taken for fuller than it is.
const estimated = 0.01

// withRoom returns the first layer of a set that grows and how many partitions have it: at least the given number.
// Each has room for the keys that it gets by chance when the set has those that it was made for. Windows stay in one
// partition. What was given is returned if there is no such room.
func withRoom(r Request, least int, first layout.Layer, mostLines int, rate float64) (int, layout.Layer) {
	most := shardRoom(first.Keys, mostLines, rate)
	partitions := least
	if r.Kind != KindWindows {
		last := min(maxPartitions, max(least, r.Keys))
		partitions += sort.Search(last-least+1, func(i int) bool { return shardKeys(r.Keys, least+i) <= most })
		if partitions > last {
			return least, first
		}
	}
	keys := min(shardKeys(r.Keys, partitions), most)
	lines, probes, err := linesFor(keys, rate)
	if err != nil || lines > mostLines || keys < first.Keys && partitions == least {
		return least, first
	}
	return partitions, layout.Layer{Keys: keys, Shards: 1, Lines: lines, Probes: probes}
}

// shardRoom returns how many keys a shard of some lines has room for. It begins to look at a guess.
func shardRoom(guess, lines int, rate float64) int {
	over := func(keys int) bool {
		needed, _, err := linesFor(keys, rate)
		return err != nil || needed > lines
	}
	limit := guess
	for !over(limit) {
		limit *= 2
	}
	return max(1, sort.Search(limit, func(keys int) bool { return over(keys + 1) }))
}

// shardKeys returns how many keys a shard must be made for, so that few of the partitions need a second one when
// there are n keys.
func shardKeys(n, partitions int) int {
	mean := float64(n) / float64(partitions)
	need := (1 + estimated) * (mean + chance*math.Sqrt(mean*(1-1/float64(partitions))))
	return int(math.Ceil(need + min(layout.Early, need/(layout.EarlyShare-1))))
}

// linesFor returns the lines and the probes that keep a rate.
func linesFor(keys int, rate float64) (lines, probes int, err error) {
	_, probes, err = blocked.Shape(keys, rate)
	if err != nil {
		return 0, 0, err
	}
	return blocked.Shape(keys, rate*math.Pow(markCost, float64(probes)))
}

// nextLayer returns the shape of a layer of one partition, unless it would be too large.
func nextLayer(keys, rate float64, mostLines int) (layout.Layer, bool) {
	if keys > layout.MaxKeys {
		return layout.Layer{}, false
	}
	lines, probes, err := linesFor(int(keys), max(rate, minLayer))
	if err != nil {
		return layout.Layer{}, false
	}
	shards := (lines + mostLines - 1) / mostLines
	layer := layout.Layer{Keys: int(keys), Shards: shards, Lines: (lines + shards - 1) / shards, Probes: probes}
	return layer, shards <= maxShards
}

// checkLayers refuses what no request leads to and what would make a reader leave its bounds.
func checkLayers(layers []layout.Layer) error {
	if len(layers) < 1 || len(layers) > MaxLayers || layers[0].Shards != 1 {
		return fmt.Errorf("%d layers cannot be", len(layers))
	}
	for i, l := range layers {
		if l.Keys < 1 || int64(l.Keys) > layout.MaxKeys || l.Shards < 1 || l.Shards > maxShards || l.Probes < 1 ||
			l.Probes > blocked.MaxProbes || l.Lines < 1 || l.Lines > MaxShardBytes/blocked.LineLen ||
			l.Len() > MaxShardBytes {
			return fmt.Errorf("layer %d cannot be: %+v", i, l)
		}
	}
	return nil
}

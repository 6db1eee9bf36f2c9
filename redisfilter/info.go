package redisfilter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
)

// An Info describes a set as it is in Redis.
type Info struct {
	Name       string
	Capacity   int     // keys that the set was made for; those of its layers if it grows
	Keys       int     // an estimate, from the bits that are set; within a few per cent
	Rate       float64 // promised
	Partitions int
	Layers     int   // of the partition that has most
	Shards     int   // values in Redis that hold keys
	Lost       int   // those of them that are missing, short, or were not made whole
	Bytes      int64 // of the values; Redis adds some 2 to 4 per cent

	// FalsePositiveRate is the probability that Contains says true for a key that was not added, as theory
	// gives it for the estimate of keys. A lost shard always says true.
	FalsePositiveRate float64

	Loaded  bool // a generation is in use
	Loading bool // one is being built
}

// Info reads a few bytes of every shard, and has Redis count the bits of each: milliseconds for a set of
// a million keys. It returns what it found together with an error if a part was lost.
func (s *Set) Info(ctx context.Context) (Info, error) {
	info, err := s.info(ctx)
	return info, s.client.wrap(s.name, err)
}

func (s *Set) info(ctx context.Context) (Info, error) {
	v, err := s.current()
	info := Info{Name: s.name}
	if err != nil {
		return info, err
	}
	info.Rate = v.cfg.Asked.Rate
	p := v.content.(*partitions)
	info.Partitions = p.count
	info.Loaded, info.Loading = v.cfg.Generation != "", v.cfg.Building != ""
	if !info.Loaded {
		return info, fmt.Errorf("%w: it was not loaded yet", ErrIncomplete)
	}
	var foreign error
	keys, rate := 0.0, 0.0
	err = p.survey(ctx, v.cfg.Generation, true, func(st shardState) error {
		shape := p.layers[st.layer]
		info.Shards++
		info.Layers = max(info.Layers, st.layer+1)
		info.Bytes += int64(shape.Len())
		info.Capacity += shape.Keys / shape.Shards
		share := 1 / float64(p.count*shape.Shards) // of keys that ask this shard
		if !st.whole {
			info.Lost++
			rate += share
			foreign = errors.Join(foreign, st.err)
			return nil
		}
		n := min(shape.KeysOf(st.ones), maxKeys)
		keys += n
		rate += share * blocked.Rate(n, shape.Lines, shape.Probes)
		return nil
	})
	info.Keys, info.FalsePositiveRate = int(math.Round(keys)), min(1, rate)
	if err == nil && info.Lost != 0 {
		err = errors.Join(s.missing(v.cfg.Generation), foreign)
	}
	return info, err
}

func onesOf(data []byte) (n int) {
	for _, b := range data {
		n += bits.OnesCount8(b)
	}
	return n
}

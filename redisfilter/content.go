package redisfilter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/redisfilter/internal/chain"
	"github.com/siftkv/siftkv/redisfilter/internal/config"
)

// Partitions is the content of a Set: a chain in each of its partitions.
type partitions struct{ *chain.Parts }

// put implements content. Keys are fresh no more if the generation had them.
func (p partitions) put(ctx context.Context, generation string, _ bool, a *addition) (whole bool, err error) {
	add := p.Add
	if a.isNew {
		add = p.AddNew
	}
	found, err := add(ctx, p.Seats(generation, a.hashes))
	if err != nil {
		return false, err
	}
	whole = true
	for i, f := range found {
		a.fresh[i] = a.fresh[i] && f.Fresh
		whole = whole && f.Whole
	}
	return whole, nil
}

func (p partitions) survey(ctx context.Context, generation string, count bool, f func(shard) error) error {
	return p.Survey(ctx, generation, count, func(st chain.State) error {
		shape := st.Shape
		s := shard{
			key: st.Key, layer: st.Layer, bytes: shape.Len(), capacity: shape.Keys / shape.Shards,
			share: 1 / float64(p.Count*shape.Shards), lost: !st.Whole, err: st.Err,
		}
		if count {
			s.keys = shape.KeysOf(st.Ones)
			s.rate = blocked.Rate(s.keys, shape.Lines, shape.Probes)
		}
		return f(s)
	})
}

// A shard is what a survey tells of a value in Redis.
type shard struct {
	key      string
	layer    int
	bytes    int
	capacity int     // keys that it was made for, 0 of a cuckoo set
	share    float64 // of the keys that are asked for in it
	lost     bool
	err      error   // ErrForeign if another value is in its place
	keys     float64 // an estimate
	rate     float64 // of false positives
}

// check returns an error unless each shard of a generation is there and whole: ErrForeign if one is another's.
func check(ctx context.Context, c content, generation string) error {
	var lost error
	err := c.survey(ctx, generation, false, func(s shard) error {
		if s.lost && s.err == nil && lost == nil {
			lost = fmt.Errorf("%w: %s is lost", ErrIncomplete, s.key)
		}
		return s.err
	})
	return cmp.Or(err, lost)
}

// An Info describes a set as it is in Redis.
type Info struct {
	Name       string
	Capacity   int     // keys that the set was made for; those of its layers if it grows
	Keys       int     // an estimate, within a few per cent; a Cuckoo counts copies
	Rate       float64 // promised
	Partitions int
	Layers     int   // of the partition that has most
	Shards     int   // values in Redis that hold keys
	Lost       int   // those of them that are missing, short, or were not made whole
	Bytes      int64 // of the values; Redis adds some 2 to 4 per cent

	// FalsePositiveRate is the probability that Contains says true for a key that was not added, as theory gives it
	// for the estimate of keys. A lost shard always says true.
	FalsePositiveRate float64

	Loaded  bool // a generation is in use
	Loading bool // one is being built
}

// Info reads a few bytes of every shard, and has Redis count the bits of each: milliseconds for a set of a million
// keys. It returns what it found together with an error if a part was lost.
func (l *lineage) Info(ctx context.Context) (Info, error) {
	info := Info{Name: l.name}
	v, err := l.current()
	if err != nil {
		return info, l.wrap(err)
	}
	g := v.cfg.Generation
	info.Rate, info.Partitions = v.cfg.Asked.Rate, v.cfg.Partitions
	info.Loaded, info.Loading = g != "", v.cfg.Building != ""
	if v.cfg.Asked.Kind == config.KindCuckoo { // its shards tell of no capacity
		info.Capacity = v.cfg.Asked.Keys
	}
	if !info.Loaded {
		return info, l.wrap(fmt.Errorf("%w: it was not loaded yet", ErrIncomplete))
	}
	var foreign error
	keys := 0.0
	err = v.content.survey(ctx, g, true, func(s shard) error {
		info.Shards++
		info.Layers = max(info.Layers, s.layer+1)
		info.Bytes += int64(s.bytes)
		info.Capacity += s.capacity
		if s.lost {
			info.Lost++
			info.FalsePositiveRate += s.share
			foreign = errors.Join(foreign, s.err)
			return nil
		}
		keys += s.keys
		info.FalsePositiveRate += s.share * s.rate
		return nil
	})
	info.Keys, info.FalsePositiveRate = int(math.Round(keys)), min(1, info.FalsePositiveRate)
	if err == nil && info.Lost != 0 {
		err = errors.Join(l.missing(g), foreign)
	}
	return info, l.wrap(err)
}

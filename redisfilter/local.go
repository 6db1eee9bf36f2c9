package redisfilter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// errGrows is returned for what only sets of one size can do.
var errGrows = conn.ProgramError{
	Cause: errors.New("a set that grows has no local counterpart: leave Options.Growth at 0"),
}

// errResizes is returned by an import that meets a load which changes the set's shape: the lines of a local set do
// not fit the generation that is loaded.
var errResizes = conn.ProgramError{Cause: errors.New("a load changes the shape of the set: wait for its end, " +
	"and make the local set again by Local")}

// Local returns an empty local set that Import takes. Fill it by its AddHash with what Set.Hash returns, or by Add if
// Options.PublicHash is set.
func (s *Set) Local() (*blocked.Set, error) {
	v, p, err := s.fixed()
	if err != nil {
		return nil, s.wrap(err)
	}
	lines := make([]byte, p.Count*p.Layers[0].Lines*blocked.LineLen)
	local, err := blocked.FromLines(lines, p.Layers[0].Probes, 0, v.cfg.Asked.Keys)
	return local, s.wrap(err)
}

// fixed returns the view, and the content of a set of one size.
func (s *Set) fixed() (*view, partitions, error) {
	v, err := s.current()
	if err != nil {
		return nil, partitions{}, err
	}
	if p := v.content.(partitions); !p.Grows() {
		return v, p, nil
	}
	return nil, partitions{}, errGrows
}

// Import adds all keys of a local set that Local returned, or Export: millions of keys in seconds, as lines are
// merged, not keys added. It promises what Add does. The set must not be a growing one, and must have been loaded, if
// by nothing else from a source without keys, or Import fails with ErrIncomplete. Import only reads local; no goroutine
// may add to it meanwhile.
func (s *Set) Import(ctx context.Context, local *blocked.Set) error {
	return s.wrap(s.importLines(ctx, local))
}

func (s *Set) importLines(ctx context.Context, local *blocked.Set) error {
	v, p, err := s.fixed()
	if err != nil {
		return err
	}
	shape := p.Layers[0]
	perShard := shape.Lines * blocked.LineLen
	if len(local.Lines()) != p.Count*perShard || local.Probes() != shape.Probes {
		return conn.ProgramError{Cause: fmt.Errorf(
			"a local set of %d bytes, %d probes does not fit %d, %d: make it by Local",
			len(local.Lines()), local.Probes(), p.Count*perShard, shape.Probes)}
	}
	shards := make([][]byte, p.Count)
	for part := range shards {
		shards[part] = append(make([]byte, layout.HeaderLen, shape.Len()), local.Lines()[part*perShard:][:perShard]...)
		for at := layout.HeaderLen; at < len(shards[part]); at += blocked.LineLen {
			layout.FoldMark(shards[part][at:])
		}
	}
	for {
		if len(v.cfg.Generations()) == 0 { // an add need not care, as a load finds its row
			return fmt.Errorf("%w: it was not loaded yet, and takes no keys before", ErrIncomplete)
		}
		if len(v.others) != 0 {
			return errResizes
		}
		if err := v.await(ctx); err != nil {
			return err
		}
		for _, g := range v.cfg.Generations() {
			if err := p.MergeFirst(ctx, g, shards); err != nil {
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
		if !v.cfg.SameShape(now.cfg) {
			if bytes.Equal(v.cfg.Seed, now.cfg.Seed) {
				return errResizes
			}
			return fmt.Errorf("%w: the set was made again during the import", ErrDropped)
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
	return s.settle(ctx, v, v.content.(partitions).AllSlots(), false)
}

// Export returns a local set of the keys that were added before the call, and perhaps of later ones. Ask it by its
// ContainsHash with what Set.Hash returns; or by Contains if Options.PublicHash is set. It fails if any part of the
// set could not say no. The set must not be a growing one.
func (s *Set) Export(ctx context.Context) (*blocked.Set, error) {
	local, err := s.export(ctx)
	return local, s.wrap(err)
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
	shape := p.Layers[0]
	perShard := shape.Lines * blocked.LineLen
	lines := make([]byte, 0, p.Count*perShard)
	keys := 0.0
	err = p.Conn.ForAll(ctx, p.Count, func(part int) []redis.Cmder {
		return []redis.Cmder{redis.NewStringCmd(ctx, "get", layout.ShardKey(p.Prefix(part, g), 0, 0))}
	}, func(part int, cmds []redis.Cmder) error {
		data, _ := cmds[0].(*redis.StringCmd).Bytes()
		if len(data) != shape.Len() || !shape.Owns(layout.ShardKey(p.Prefix(part, g), 0, 0), data) {
			return s.missing(g)
		}
		ones := 0
		for at := layout.HeaderLen; at < len(data); at += blocked.LineLen {
			if data[at+layout.MarkByte]&layout.MarkBit == 0 {
				return s.missing(g)
			}
			ones += layout.Ones(data[at:at+blocked.LineLen]) - 1
			layout.UnfoldMark(data[at:])
		}
		keys += shape.KeysOf(ones)
		lines = append(lines, data[layout.HeaderLen:]...)
		return nil
	})
	if errors.Is(err, redis.Nil) {
		return nil, s.missing(g)
	}
	if err != nil {
		return nil, err
	}
	if _, err := s.settle(ctx, v, p.AllSlots(), true); err != nil {
		return nil, err
	}
	return blocked.FromLines(lines, shape.Probes, int(math.Round(keys)), v.cfg.Asked.Keys)
}

package redisfilter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/siftkv/siftkv/redisfilter/internal/config"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
	"github.com/siftkv/siftkv/redisfilter/internal/nodes"
)

// Every generation is in a record from before its first value is written until after its last one was removed. So
// whatever a process leaves that ends in between, another process finds: a generation of the record that the
// configuration does not name is removed by any process that has the set open.

// madeKey is the record: a Redis hash from generations to their shapes, each a configuration.
func madeKey(name string) string { return layout.ConfigKey(name) + ":made" }

// makeBlank makes an empty generation of the shape of v and trusts the servers that hold it.
func (l *lineage) makeBlank(ctx context.Context, v *view) (generation string, identities []string, err error) {
	identities, complete := l.client.Watch.Map().Identities()
	if !complete {
		return "", nil, fmt.Errorf("%w: not every master of the cluster answers", ErrUnavailable)
	}
	generation = config.NewGeneration()
	shape := *v.cfg
	shape.Generation, shape.Building, shape.Retiring, shape.Next, shape.Former = "", "", "", nil, nil
	if err := l.client.RDB.HSet(ctx, madeKey(l.name), generation, shape.Encode()).Err(); err != nil {
		return "", nil, err
	}
	if err = v.content.Blank(ctx, generation); err == nil {
		err = l.trust(ctx, generation, identities)
	}
	if err != nil {
		err = errors.Join(err, l.discard(ctx, generation, v.content))
	}
	return generation, identities, err
}

// discard removes a generation, and then its record.
func (l *lineage) discard(ctx context.Context, generation string, c content) error {
	if err := c.Discard(ctx, generation); err != nil {
		return err
	}
	if err := l.client.RDB.Unlink(ctx, trustedKey(l.name, generation)).Err(); err != nil {
		return err
	}
	return l.client.RDB.HDel(ctx, madeKey(l.name), generation).Err()
}

// leftovers returns the recorded generations that the configuration does not name. It is read after the record: what
// another process made since is in neither, or in both.
func (l *lineage) leftovers(ctx context.Context) (map[string]content, error) {
	made, err := l.client.RDB.HGetAll(ctx, madeKey(l.name)).Result()
	if err != nil {
		return nil, err
	}
	now, err := l.stored().Read(ctx)
	if err != nil {
		return nil, err
	}
	left := map[string]content{}
	for generation, shape := range made {
		if now != nil && slices.Contains(now.Generations(), generation) {
			continue
		}
		cfg, err := config.Decode([]byte(shape))
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrForeign, madeKey(l.name), err)
		}
		left[generation] = l.open(cfg)
	}
	return left, nil
}

// sweep removes what loads left that did not come to their end. The caller has the lock.
func (l *lineage) sweep(ctx context.Context, v *view) (*view, error) {
	left, err := l.leftovers(ctx)
	if err != nil {
		return v, err
	}
	for _, g := range v.cfg.Generations() {
		if g != v.cfg.Generation {
			left[g] = v.contentOf(g)
		}
	}
	if len(left) == 0 {
		return v, nil
	}
	err = l.retire(ctx, v.cfg, left)
	return l.view.Load(), err
}

// retire ends the life of generations that are not in use, when no process can add to them any more.
func (l *lineage) retire(ctx context.Context, cfg *config.Config, old map[string]content) error {
	if cfg.Building+cfg.Retiring != "" {
		if err := sleep(ctx, nodes.Lease); err != nil {
			return err
		}
		if _, err := l.publish(ctx, cfg, func(c *config.Config) {
			c.Building, c.Retiring, c.Next, c.Former = "", "", nil, nil
		}); err != nil {
			return err
		}
	}
	return l.remove(ctx, old)
}

// remove removes generations that the configuration has ceased to name a moment ago.
func (l *lineage) remove(ctx context.Context, old map[string]content) (err error) {
	if err := sleep(ctx, nodes.Lease); err != nil {
		return err
	}
	for g, c := range old {
		err = errors.Join(err, l.discard(ctx, g, c))
	}
	return err
}

// abandon removes a generation that did not come into use. Whether it did is asked again: the answer to the last
// change may be what was lost.
func (l *lineage) abandon(ctx context.Context, c content, generation string) error {
	l.refresh(ctx)
	v := l.view.Load()
	switch {
	case v.usable() != nil:
		return v.usable()
	case v.err != nil || !l.client.Watch.Valid(v.confirmed):
		return fmt.Errorf("%w: generation %s is left in redis until another load", ErrUnavailable, generation)
	case v.cfg.Generation == generation:
		return nil
	case v.cfg.Building == generation:
		return l.retire(ctx, v.cfg, map[string]content{generation: c})
	}
	return l.discard(ctx, generation, c)
}

// Drop removes the set from Redis, in 1.5 s, after which no process adds to it any more. Other processes are told
// ErrDropped for an hour. A Drop that failed, or was broken off, may be called again.
func (l *lineage) Drop(ctx context.Context) error {
	named, err := l.bury(ctx)
	if err != nil {
		return l.wrap(err)
	}
	left, err := l.leftovers(ctx)
	if err != nil {
		return l.wrap(err)
	}
	maps.Copy(left, named)
	if len(left) == 0 {
		return nil
	}
	return l.wrap(l.remove(ctx, left))
}

// bury puts a tombstone in the place of the configuration and returns the generations that it named, none if the set
// was dropped before.
func (l *lineage) bury(ctx context.Context) (named map[string]content, err error) {
	for {
		v, err := l.current()
		if errors.Is(err, ErrDropped) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		dropped, err := l.stored().Drop(ctx, v.cfg)
		if err != nil {
			return nil, err
		}
		if dropped {
			l.refresh(ctx)
			named = map[string]content{}
			for _, g := range v.cfg.Generations() {
				named[g] = v.contentOf(g)
			}
			return named, nil
		}
		if err := l.client.Watch.Poll(ctx); err != nil {
			return nil, err
		}
	}
}

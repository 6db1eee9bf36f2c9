package redisfilter

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/redisfilter/internal/layout"
	"github.com/siftkv/siftkv/redisfilter/internal/nodes"
)

// Every generation is in a record from before its first value is written until after its last one was
// removed. So whatever a process leaves that ends in between, another process finds: a generation of
// the record that the configuration does not name is removed by any process that has the set open.

// madeKey is the record: a Redis hash from generations to their shapes, each a configuration.
func madeKey(name string) string { return layout.ConfigKey(name) + ":made" }

// makeBlank makes an empty generation of the shape of v and trusts the servers that hold it.
func (l *lineage) makeBlank(ctx context.Context, v *view) (generation string, identities []string, err error) {
	identities, complete := l.client.watch.Map().Identities()
	if !complete {
		return "", nil, fmt.Errorf("%w: not every master of the cluster answers", ErrUnavailable)
	}
	generation = newGeneration()
	shape := *v.cfg
	shape.Generation, shape.Building, shape.Retiring, shape.Next, shape.Former = "", "", "", nil, nil
	if err := l.client.rdb.HSet(ctx, madeKey(l.name), generation, shape.encode()).Err(); err != nil {
		return "", nil, err
	}
	if err = v.content.blank(ctx, generation); err == nil {
		err = l.trust(ctx, generation, identities)
	}
	if err != nil {
		err = errors.Join(err, l.discard(ctx, generation, v.content))
	}
	return generation, identities, err
}

// discard removes a generation, and then its record.
func (l *lineage) discard(ctx context.Context, generation string, c content) error {
	if err := c.discard(ctx, generation); err != nil {
		return err
	}
	if err := l.client.rdb.Unlink(ctx, trustedKey(l.name, generation)).Err(); err != nil {
		return err
	}
	return l.client.rdb.HDel(ctx, madeKey(l.name), generation).Err()
}

// leftovers returns the recorded generations that the configuration does not name. It is read after
// the record: what another process made since is in neither, or in both.
func (l *lineage) leftovers(ctx context.Context) (map[string]content, error) {
	made := redis.NewMapStringStringCmd(ctx, "hgetall", madeKey(l.name))
	get := redis.NewStringCmd(ctx, "get", layout.ConfigKey(l.name))
	l.client.run(ctx, made, get)
	data, err := get.Bytes()
	now := &config{}
	if err == nil {
		now, err = decodeConfig(data)
	}
	if err = errors.Join(made.Err(), err); err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	left := map[string]content{}
	for generation, shape := range made.Val() {
		if slices.Contains(now.generations(), generation) {
			continue
		}
		cfg, err := decodeConfig([]byte(shape))
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
	for _, g := range v.cfg.generations() {
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
func (l *lineage) retire(ctx context.Context, cfg *config, old map[string]content) error {
	if cfg.Building+cfg.Retiring != "" {
		if err := sleep(ctx, nodes.Lease); err != nil {
			return err
		}
		if _, err := l.publish(ctx, cfg, func(c *config) {
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

// abandon removes a generation that did not come into use. Whether it did is asked anew: the answer
// to the last change may be what was lost.
func (l *lineage) abandon(ctx context.Context, c content, generation string) error {
	l.refresh(ctx)
	v := l.view.Load()
	switch {
	case v.usable() != nil:
		return v.usable()
	case v.err != nil || !l.client.watch.Valid(v.confirmed):
		return fmt.Errorf("%w: generation %s is left in redis until another load", ErrUnavailable, generation)
	case v.cfg.Generation == generation:
		return nil
	case v.cfg.Building == generation:
		return l.retire(ctx, v.cfg, map[string]content{generation: c})
	}
	return l.discard(ctx, generation, c)
}

// drop forgets the set everywhere. One that was broken off is completed by the next.
func (l *lineage) drop(ctx context.Context) error {
	for {
		v := l.view.Load()
		err := v.usable()
		if errors.Is(err, ErrDropped) {
			left, err := l.leftovers(ctx)
			if err != nil || len(left) == 0 {
				return err
			}
			return l.remove(ctx, left)
		}
		if err != nil {
			return err
		}
		swapped, err := l.swap(ctx, v.cfg.encoded, &config{Version: configVersion, Dropped: true})
		if err != nil {
			return err
		}
		if swapped {
			l.refresh(ctx)
			return l.removeAll(ctx, v)
		}
		if err := l.client.watch.Poll(ctx); err != nil {
			return err
		}
	}
}

// removeAll removes the generations of a set that was just dropped.
func (l *lineage) removeAll(ctx context.Context, v *view) error {
	if v.cfg.Asked.Kind == kindWindows { // Redis removes them
		return nil
	}
	left, err := l.leftovers(ctx)
	if err != nil {
		return err
	}
	for _, g := range v.cfg.generations() {
		left[g] = v.contentOf(g)
	}
	return l.remove(ctx, left)
}

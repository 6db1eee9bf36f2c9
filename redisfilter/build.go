package redisfilter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/siftkv/siftkv/redisfilter/internal/chain"
	"github.com/siftkv/siftkv/redisfilter/internal/config"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/nodes"
)

// build makes the set's next generation out of a source and takes it into use. The caller has the lock.
//
// Every wait is for processes whose view is as old as a view may be. The first is for those that add to the old
// generation only, and for the commits of their rows, so that the source shows them. The next wait is for those that
// still ask the old generation, before adds stop to go there. The last is for those that still add to it, before its
// values are removed.
func (l *lineage) build(ctx context.Context, source Source) (err error) {
	v := l.view.Load()
	if err = v.usable(); err != nil {
		return err
	}
	if v, err = l.sweep(ctx, v); err != nil {
		return err
	}
	shape, err := v.cfg.ForNext(l.asked)
	if err != nil {
		return err
	}
	made := v.content
	if shape != v.cfg {
		made = l.open(shape)
	}
	generation, identities, err := l.makeBlank(ctx, &view{cfg: shape, content: made})
	if err != nil {
		return err
	}
	used := false
	defer func() {
		if !used && ctx.Err() == nil { // else the process that polls next sees what is left
			err = errors.Join(err, l.abandon(ctx, made, generation))
		}
	}()
	cfg, err := l.publish(ctx, v.cfg, func(c *config.Config) {
		if c.Building = generation; shape != v.cfg {
			c.Next = shape.Size(c)
		}
	})
	if err != nil {
		return err
	}
	wait := nodes.Lease
	if source != nil { // the commits of rows whose keys only the old generation got
		wait += cfg.Grace
	}
	if err := sleep(ctx, wait); err != nil {
		return err
	}
	if err := l.fill(ctx, made, generation, source); err != nil {
		return err
	}
	if source != nil && v.cfg.Asked.Kind == config.KindCuckoo { // see Cuckoo.removeEach
		if err := sleep(ctx, cfg.Grace); err != nil {
			return err
		}
	}
	if err := l.verify(ctx, made, generation, identities); err != nil {
		return err
	}
	cfg, err = l.publish(ctx, cfg, (*config.Config).Use)
	if err != nil {
		return err
	}
	used = true
	if cfg.Retiring == "" {
		return nil
	}
	return l.retire(ctx, cfg, map[string]content{cfg.Retiring: v.content})
}

func (l *lineage) fill(ctx context.Context, c content, generation string, source Source) error {
	if source == nil {
		return nil
	}
	put, finish := c.Bulk(generation)
	if err := feed(ctx, source, time.Time{}, c, put); err != nil {
		return err
	}
	return finish(ctx)
}

// feedLen is how many keys of a source are added together.
const feedLen = 4096

// feed puts the keys of a source that were committed since a time.
func feed(ctx context.Context, source Source, since time.Time, c content, put chain.Insert) error {
	hashes := make([]uint64, 0, feedLen)
	var failed error // to add, which is not the source's fault
	err := source(ctx, since, func(keys ...[]byte) error {
		for _, key := range keys {
			if hashes = append(hashes, c.Hash(key)); len(hashes) < feedLen {
				continue
			}
			if failed = put(ctx, hashes); failed != nil {
				return failed
			}
			hashes = hashes[:0]
		}
		return ctx.Err()
	})
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return conn.ProgramError{Cause: fmt.Errorf("reading its source: %w", err)}
	}
	return put(ctx, hashes)
}

// verify returns an error unless the generation is whole, on the servers that it was made on.
func (l *lineage) verify(ctx context.Context, c content, generation string, identities []string) error {
	if err := check(ctx, c, generation); err != nil {
		return err
	}
	if err := l.client.Watch.Poll(ctx); err != nil {
		return err
	}
	now, complete := l.client.Watch.Map().Identities()
	if !complete || !slices.Equal(sorted(now), sorted(identities)) {
		return fmt.Errorf("%w: a server was restarted or failed over during the load", ErrUnavailable)
	}
	return nil
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// refill adds what servers may have forgotten that failed over, and trusts them from then on.
func (l *lineage) refill(ctx context.Context, source Source, since time.Time) (err error) {
	defer func() { l.loaded(err) }()
	v := l.view.Load()
	if err := v.usable(); err != nil {
		return err
	}
	generation := v.cfg.Generation
	identities, complete := l.client.Watch.Map().Identities()
	if !complete {
		return fmt.Errorf("%w: not every master of the cluster answers", ErrUnavailable)
	}
	if source != nil {
		if err := sleep(ctx, nodes.Lease+v.cfg.Grace); err != nil {
			return err
		}
		put := func(ctx context.Context, hashes []uint64) error { return v.content.Insert(ctx, generation, hashes) }
		if err := feed(ctx, source, since, v.content, put); err != nil {
			return err
		}
	}
	if err := l.verify(ctx, v.content, generation, identities); err != nil {
		return err
	}
	if err := l.trust(ctx, generation, identities); err != nil {
		return err
	}
	l.refresh(ctx)
	return nil
}

// sleep waits, a little longer each time than the last.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d + rand.N(d/50+1))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

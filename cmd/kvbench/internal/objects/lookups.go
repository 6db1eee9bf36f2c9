package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/kv"
)

// rows measures lookups with each cache, and with too little memory.
func (s *store) rows(ctx context.Context) error {
	caches := s.x.Caches
	if s.x.Memory > 0 {
		caches = append(slices.Clip(caches), -1)
	}
	for _, cache := range caches {
		r := Row{Filter: s.policy.String(), Shape: s.shape, Cache: max(cache, 0), Limited: cache < 0}
		o := s.options(r.Cache)
		if r.Limited {
			if s.policy.Name() == "none" {
				continue // it has no filters that could be too large
			}
			o = s.limited()
		}
		o.ReadOnly = true // nothing changes the shape
		phase := s.x.Progress.Start(fmt.Sprintf("look up in %s, %s, cache %s", r.Filter, r.Shape, r.CacheText()), 0, "")
		if err := s.using(o, func(db *kv.DB) error { return s.row(ctx, db, &r) }); err != nil {
			return err
		}
		phase.Done()
		s.x.result.Rows = append(s.x.result.Rows, r)
	}
	return nil
}

// row measures lookups of all kinds, each after some that fill the cache.
func (s *store) row(ctx context.Context, db *kv.DB, r *Row) error {
	m := db.Metrics()
	if err := s.checkShape(m); err != nil {
		return err
	}
	r.Files, r.Runs, r.BitsPerKey = files(m), len(m.Runs), bitsPerKey(m)
	cached := r.Cache > 0 || r.Limited
	if cached {
		if err := s.walk(ctx, db); err != nil {
			return err
		}
	}
	random := keys.NewRandom(s.x.Seed, 0)
	zipf := keys.NewZipf(s.x.Keys, keys.Theta)
	asked := 0
	for _, kind := range []struct {
		into    *Cost
		present bool
		next    func(dst []byte) []byte
	}{
		{&r.Absent, false, func(dst []byte) []byte {
			asked++
			return s.x.source.AppendAbsent(dst, asked%s.x.source.Absent())
		}},
		{&r.Present, true, func(dst []byte) []byte { return s.x.source.AppendPresent(dst, random.Below(s.x.Keys)) }},
		{&r.Zipfian, true, func(dst []byte) []byte {
			return s.x.source.AppendPresent(dst, zipf.Draw(random.Float()))
		}},
	} {
		if cached {
			if _, err := s.lookUp(ctx, db, kind.present, kind.next); err != nil {
				return err
			}
		}
		cost, err := s.lookUp(ctx, db, kind.present, kind.next)
		if err != nil {
			return err
		}
		*kind.into = cost
	}
	r.FiltersSkipped = db.Metrics().FiltersSkipped
	return nil
}

// walk looks keys up in their order, so that a cache has each block of the store that it has room
// for.
func (s *store) walk(ctx context.Context, db *kv.DB) error {
	var key, value []byte
	var err error
	for i := 0; i < s.x.Keys; i += 8 {
		key = s.x.source.AppendInOrder(key[:0], i)
		if value, err = db.AppendGet(value[:0], key); err != nil {
			return fmt.Errorf("key %x: %w", key, err)
		}
		if err := s.x.check(key, value, true); err != nil {
			return err
		}
		if i%batchKeys == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// lookUp looks keys up one after the other. Of absent ones it takes more until there were as many
// requests as there are lookups of other kinds.
func (s *store) lookUp(ctx context.Context, db *kv.DB, present bool, next func([]byte) []byte) (c Cost, err error) {
	var key, value []byte
	c.Traffic, err = s.x.traffic(func() error {
		before := s.x.counters.Snapshot()
		for c.Lookups < s.x.Lookups || !present && c.Lookups < absentLookups*s.x.Lookups {
			if c.Lookups%batchKeys == 0 && c.Lookups > 0 {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if s.x.counters.Snapshot().Minus(before).Total().Requests >= int64(s.x.Lookups) {
					break
				}
			}
			key = next(key[:0])
			got, err := db.AppendGet(value[:0], key)
			if errors.Is(err, kv.ErrNotFound) {
				got, err = nil, nil
			} else {
				value = got
			}
			if err != nil {
				return fmt.Errorf("key %x: %w", key, err)
			}
			if err := s.x.check(key, got, present); err != nil {
				return err
			}
			c.Lookups++
		}
		return nil
	})
	c.DollarsPerMillion = 1e6 * s.x.Dollars(c.Traffic) / float64(max(c.Lookups, 1))
	return c, err
}

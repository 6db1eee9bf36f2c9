package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/objstore"
)

// rows measures lookups with each cache, and with too little memory.
func (s *store) rows(ctx context.Context) error {
	caches := s.x.Caches
	if s.x.Memory > 0 && s.policy.Name() != "none" { // which has no filters that could be too large
		caches = append(slices.Clip(caches), shortMemory)
	}
	for _, cache := range caches {
		o := s.options(cache)
		if cache == shortMemory {
			o = s.limited()
		}
		o.ReadOnly = true // nothing changes the shape
		of := LookupCell(s.policy.String(), s.shape, cacheText(cache))
		title := fmt.Sprintf("look up in %s, %s, cache %s", of["filter"], s.shape, of["cache"])
		phase := s.x.Progress.Start(title, 0, "")
		if err := s.using(o, func(db *kv.DB) error { return s.row(ctx, db, of, cache != 0) }); err != nil {
			return err
		}
		phase.Done()
	}
	return nil
}

// row measures lookups of all kinds, each after some that fill the cache if there is one.
func (s *store) row(ctx context.Context, db *kv.DB, of tidy.Cell, cached bool) error {
	m := db.Metrics()
	if err := s.checkShape(m); err != nil {
		return err
	}
	r := s.x.result
	r.Add(of, "files", "", float64(files(m)))
	r.Add(of, "runs", "", float64(len(m.Runs)))
	r.Add(of, "filters", "bits/key", bitsPerKey(m)) // in the object store
	if cached {
		if err := s.walk(ctx, db); err != nil {
			return err
		}
	}
	random := keys.NewRandom(s.x.Seed, 0)
	zipf := keys.NewZipf(s.x.Keys, keys.Theta)
	asked := 0
	for i, next := range []func(dst []byte) []byte{
		func(dst []byte) []byte {
			asked++
			return s.x.source.AppendAbsent(dst, asked%s.x.source.Absent())
		},
		func(dst []byte) []byte { return s.x.source.AppendPresent(dst, random.Below(s.x.Keys)) },
		func(dst []byte) []byte { return s.x.source.AppendPresent(dst, zipf.Draw(random.Float())) },
	} {
		kind, present := LookupKinds[i], i > 0
		if cached {
			if _, _, err := s.lookUp(ctx, db, present, next); err != nil {
				return err
			}
		}
		n, traffic, err := s.lookUp(ctx, db, present, next)
		if err != nil {
			return err
		}
		r.Add(of, kind+" lookups", "", float64(n))
		s.x.cost(of, kind+" ", traffic, n)
	}
	r.Add(of, "filters-skipped", "", float64(db.Metrics().FiltersSkipped)) // for want of memory
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
func (s *store) lookUp(ctx context.Context, db *kv.DB, present bool, next func([]byte) []byte) (n int,
	traffic objstore.Counts, err error) {
	var key, value []byte
	traffic, err = s.x.traffic(func() error {
		before := s.x.counters.Snapshot()
		for n < s.x.Lookups || !present && n < absentLookups*s.x.Lookups {
			if n%batchKeys == 0 && n > 0 {
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
			n++
		}
		return nil
	})
	return n, traffic, err
}

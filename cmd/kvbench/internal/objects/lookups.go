package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
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
	shape := engine.ShapeOf(m).Total()
	r.Add(of, "files", "", float64(shape.Files))
	r.Add(of, "runs", "", float64(len(m.Runs)))
	r.Add(of, "filters", "bits/key", shape.BitsPerKey()) // in the object store
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

// operations measures what changes nothing: opening, polling, reading many keys. No block is
// cached.
func (s *store) operations(ctx context.Context) error {
	phase := s.x.Progress.Start("open, poll and scan, "+s.shape, 0, "")
	defer phase.Done()
	if err := s.opening(OpenWriter, kv.Open); err != nil {
		return err
	}
	if err := s.opening(OpenView, kv.OpenReadOnly); err != nil {
		return err
	}
	view, err := kv.OpenReadOnly("", s.options(0))
	if err != nil {
		return err
	}
	random := keys.NewRandom(s.x.Seed, 1)
	return errors.Join(s.note(view,
		operation{Poll, s.x.Repetitions, 1, func() error { return view.Refresh(ctx) }},
		operation{MultiGet, s.x.Repetitions, 1, func() error { return s.multiGet(ctx, view, random) }},
		operation{Scan, s.x.Repetitions, 1, func() error {
			return s.scan(ctx, view, random.Below(s.x.Keys-scanKeys+1), scanKeys)
		}},
		operation{WholeScan, 1, 1, func() error { return s.scan(ctx, view, 0, s.x.Keys) }}), view.Close())
}

// opening measures how a store is opened, once: each writer leaves something for the next.
func (s *store) opening(name string, open func(string, *kv.Options) (*kv.DB, error)) error {
	var db *kv.DB
	err := s.note(nil, operation{name, 1, 1, func() (err error) {
		db, err = open("", s.options(0))
		return err
	}})
	if err != nil {
		return err
	}
	of := OperationCell(name, s.shape, s.policy.String())
	s.x.result.Add(of, "files", "", float64(engine.ShapeOf(db.Metrics()).Total().Files))
	return db.Close()
}

func (s *store) multiGet(ctx context.Context, db *kv.DB, random *keys.Random) error {
	wanted := make([][]byte, multiKeys)
	for i := range wanted {
		wanted[i] = s.x.source.AppendPresent(nil, random.Below(s.x.Keys))
	}
	got, err := db.MultiGet(wanted)
	if err != nil {
		return err
	}
	for i, key := range wanted {
		if err := s.x.check(key, got[i], true); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// scan reads n keys from one on, by rank.
func (s *store) scan(ctx context.Context, db *kv.DB, from, n int) (err error) {
	it, err := db.NewIter(nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	key := s.x.source.AppendInOrder(nil, from)
	ok := it.SeekGE(key)
	for i := range n {
		key = s.x.source.AppendInOrder(key[:0], from+i)
		if !ok || !bytes.Equal(it.Key(), key) {
			return errors.Join(it.Error(), fmt.Errorf("%w: a scan has not come to key %x", bench.ErrWrongAnswer, key))
		}
		if err := s.x.check(key, it.Value(), true); err != nil {
			return err
		}
		if i%batchKeys == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if i < n-1 {
			ok = it.Next()
		}
	}
	if n == s.x.Keys && it.Next() {
		return fmt.Errorf("%w: a scan goes on after the last key", bench.ErrWrongAnswer)
	}
	return it.Error()
}

// writes measures single writes, by one writer, by many and by one who does nothing; and then into a log on the local
// disk.
func (s *store) writes(ctx context.Context) error {
	phase := s.x.Progress.Start("write", 0, "")
	defer phase.Done()
	usual, local := s.options(0), s.options(0)
	usual.Objects = &objects.Config{Store: s.objects}
	local.Objects = &objects.Config{Store: s.objects, LogInterval: time.Hour, LocalLog: true}
	written := 0
	one := func(db *kv.DB) func() error {
		return func() error {
			written++
			return s.put(ctx, db, written-1, written, kv.Sync)
		}
	}
	return errors.Join(s.using(usual, func(db *kv.DB) error {
		return s.note(db, operation{SyncWrite, s.x.Repetitions, 1, one(db)},
			operation{SyncTogether, s.x.Repetitions, writers, func() error { return s.together(ctx, db) }},
			operation{IdleWriter, 1, 1, func() error {
				time.Sleep(time.Second)
				return ctx.Err()
			}})
	}), s.using(local, func(db *kv.DB) error {
		return s.note(db, operation{LocalWrite, s.x.Repetitions, 1, one(db)})
	}))
}

func (s *store) together(ctx context.Context, db *kv.DB) error {
	var all sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		all.Go(func() { errs[i] = s.put(ctx, db, i, i+1, kv.Sync) })
	}
	all.Wait()
	return errors.Join(errs...)
}

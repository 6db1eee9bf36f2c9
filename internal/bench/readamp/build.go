package readamp

import (
	"context"
	"path/filepath"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/measure"
)

// A builtStore is a store that is loaded and settled.
type builtStore struct {
	plan   storePlan
	dir    string
	store  engine.Store // nil while it is not open
	result StoreResult
}

// An openRow is a row with its readers and what they measured so far.
type openRow struct {
	plan    rowPlan
	store   *builtStore
	readers map[engine.Kind]engine.Reader
	reps    map[engine.Kind][]measure.Repetition
	latency map[engine.Kind]*hdrhistogram.Histogram
}

// build opens, loads and settles a store and opens its rows.
func (x *experiment) build(ctx context.Context, p storePlan, dir string) error {
	s := &builtStore{
		plan: p, dir: filepath.Join(x.dir, dir),
		result: StoreResult{Name: p.name, Engine: p.engine, Filter: p.filter},
	}
	if err := x.open(s); err != nil {
		return err
	}
	x.stores = append(x.stores, s)
	if p.engine != Null {
		if err := x.load(ctx, s); err != nil {
			return err
		}
		if err := x.reopen(s); err != nil {
			return err
		}
	}
	for _, r := range p.rows {
		if err := x.openRow(r, s); err != nil {
			return err
		}
	}
	return nil
}

// open opens the store of s.
func (x *experiment) open(s *builtStore) error {
	store, err := s.plan.open(s.dir)
	if err != nil {
		return err
	}
	if x.config.Wrap != nil {
		store = x.config.Wrap(s.plan.name, store)
	}
	s.store = store
	return nil
}

// reopen closes and opens a settled store, so that every engine starts lookups
// from the same state: an empty block cache that no memtable takes room of
// (Pebble's memtables count against its cache).
func (x *experiment) reopen(s *builtStore) error {
	store := s.store
	s.store = nil
	if err := store.Close(); err != nil {
		return err
	}
	return x.open(s)
}

// load writes every present key, settles the store and notes its shape.
func (x *experiment) load(ctx context.Context, s *builtStore) error {
	n := x.source.Present()
	phase := x.config.Progress.Start("load "+s.plan.name, n, "keys")
	start := time.Now()
	if err := measure.Fill(ctx, x.source, x.values, s.store, n, phase.Add); err != nil {
		return err
	}
	s.result.LoadSeconds = time.Since(start).Seconds()
	phase.Done()

	phase = x.config.Progress.Start("settle "+s.plan.name, 0, "")
	start = time.Now()
	if err := s.store.Settle(ctx); err != nil {
		return err
	}
	s.result.SettleSeconds = time.Since(start).Seconds()
	phase.Done()

	shape, err := s.store.Shape()
	s.result.Shape, s.result.Settled = shape, shape.Settled()
	return err
}

// openRow opens the readers of a row.
func (x *experiment) openRow(p rowPlan, s *builtStore) error {
	row := &openRow{
		plan: p, store: s,
		readers: map[engine.Kind]engine.Reader{},
		reps:    map[engine.Kind][]measure.Repetition{},
		latency: map[engine.Kind]*hdrhistogram.Histogram{},
	}
	x.rows = append(x.rows, row)
	for _, kind := range engine.Kinds {
		reader, err := s.store.NewReader(p.access, kind)
		if err != nil {
			return err
		}
		row.readers[kind] = reader
		row.latency[kind] = measure.NewHistogram()
	}
	return nil
}

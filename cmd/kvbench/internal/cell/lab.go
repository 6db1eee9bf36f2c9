package cell

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// A Lab runs cells, one at a time or in turns, in a temporary directory of its own.
type Lab struct {
	Argv     []string
	Progress *progress.Reporter

	Loading Loading // of stores; zero: one compaction, so that trees come out the same every time, and small batches

	// Wrap, if set, stands between a cell and each store it opens.
	Wrap func(store string, s engine.Store) engine.Store

	dir    string
	remove func() error // removes dir
	last   *built       // store of the last cell
	before *conditions  // before the first rows that were measured in turns
}

// conditions are the machine before a measurement loads it.
type conditions struct {
	env   environ.Environment
	timer int64
}

// NewLab makes the directory in parent, the system's if that is empty. The caller
// closes the lab.
func NewLab(parent string, argv []string, p *progress.Reporter) (*Lab, error) {
	dir, remove, err := bench.TempDir(parent, "cells")
	if err != nil {
		return nil, err
	}
	return &Lab{Argv: argv, Progress: p, dir: dir, remove: remove}, nil
}

// Close removes the directory with everything in it.
func (l *Lab) Close() error { return l.remove() }

// conditions describes the machine.
func (l *Lab) conditions() conditions {
	e := environ.Capture(l.Argv, l.dir)
	e.Dir = filepath.Dir(l.dir)
	return conditions{e, int64(measure.TimerCost())}
}

// A run is a cell under way.
type run struct {
	lab      *Lab
	settings Settings
	name     string // of the cell, in errors and identities
	store    string // name of the store
	title    string // in progress
	orders   orders
	variant  *engine.Variant
	values   keys.Values
	source   keys.Source

	conditions
	scans     *Scans
	budget    int64 // bytes of filters with Spread; 0: what theory says of the filter
	built     *built
	readers   map[engine.Kind][]engine.Reader // one for each worker
	passes    map[engine.Kind]*passes
	pace      *Pace
	pageCache measure.PageCache
}

// newRun returns a run that has neither keys nor a store.
func (l *Lab) newRun(s Settings, on conditions) (x *run, err error) {
	x = &run{lab: l, settings: s, orders: oneByOne, passes: map[engine.Kind]*passes{}, conditions: on}
	for _, kind := range engine.Kinds {
		x.passes[kind] = newPasses()
	}
	if x.values, err = s.values(); err != nil {
		return nil, err
	}
	x.variant, err = engine.NewVariant(s.Engine, s.Filter, x.values)
	return x, err
}

// Run measures one cell. A wrong answer ends it with an error that matches
// bench.ErrWrongAnswer; counters that do not add up are in the result, see
// Identities.Err.
func (l *Lab) Run(ctx context.Context, s Settings) (r *Result, err error) {
	started := time.Now()
	if err := s.Check(); err != nil {
		return nil, err
	}
	x, err := l.newRun(s, l.conditions())
	if err != nil {
		return nil, err
	}
	x.name, x.store, x.title = s.Name(), s.Name(), s.Engine+" "+s.Filter
	reused := l.last != nil && l.last.text == s.BuildText()
	if reused {
		x.built, x.source = l.last, l.last.source
	} else {
		if err := l.forget(); err != nil {
			return nil, err
		}
		if x.source, err = s.Open(); err != nil {
			return nil, err
		}
	}
	if err := x.checkWorkload(); err != nil {
		return nil, err
	}
	if !reused {
		if err := x.build(ctx); err != nil {
			return nil, err
		}
		l.last = x.built
	}
	defer func() { err = errors.Join(err, x.close()) }()
	if err := x.alone(ctx); err != nil {
		return nil, err
	}
	if s.Scan != "" {
		if x.scans, err = x.scan(ctx); err != nil {
			return nil, err
		}
	}
	if r, err = x.result(); err != nil {
		return nil, err
	}
	r.Build.Reused, r.WallSeconds = reused, time.Since(started).Seconds()
	return r, nil
}

// forget removes the store of the last cell.
func (l *Lab) forget() error {
	if l.last == nil {
		return nil
	}
	dir := l.last.dir
	l.last = nil
	return os.RemoveAll(dir)
}

// phase starts a phase of the cell.
func (x *run) phase(name string, total int, unit string) *progress.Phase {
	return x.lab.Progress.Start(name+" "+x.title, total, unit)
}

// reopen opens the store, anew if it is open: with an empty block cache, and no
// memtable that takes room of it.
func (x *run) reopen() error {
	if err := x.close(); err != nil {
		return err
	}
	if err := x.open(nil); err != nil {
		return err
	}
	return x.openReaders()
}

// openReaders opens a reader for each kind and worker.
func (x *run) openReaders() error {
	x.readers = map[engine.Kind][]engine.Reader{}
	for _, kind := range engine.Kinds {
		for range x.settings.Threads {
			r, err := x.built.store.NewReader(x.variant.Access, kind)
			if err != nil {
				return err
			}
			x.readers[kind] = append(x.readers[kind], r)
		}
	}
	return nil
}

// closeReaders closes the readers.
func (x *run) closeReaders() error {
	var errs []error
	for _, kind := range engine.Kinds {
		for _, r := range x.readers[kind] {
			errs = append(errs, r.Close())
		}
	}
	x.readers = nil
	return errors.Join(errs...)
}

func (x *run) close() error { return errors.Join(x.closeReaders(), x.built.close()) }

// Package cell runs one cell of an experiment: one engine with one filter, one tree,
// one cache and one workload, whose result is the same file whenever it is run, except
// for its times.
//
// A Lab runs one cell after another and keeps the last store, so that cells that differ in
// cache or workload share it; or it builds the stores of several cells and measures them in
// turns. Either way a store is loaded, settled or grown, and opened again; lookups are drawn,
// a warm-up is made, and each repetition times one loop with its counters and then single
// lookups, and checks every answer.
package cell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/internal/cli/progress"
	"github.com/siftkv/siftkv/kv/lookuptrace"
	"github.com/siftkv/siftkv/kv/lookuptrace/record"
)

// A Lab runs cells, one at a time or in turns, in a temporary directory of its own.
type Lab struct {
	Argv     []string
	Progress *progress.Reporter

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
	x, err := l.single(s)
	if err != nil {
		return nil, err
	}
	s = x.settings
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
	r = x.result()
	r.Build.Reused, r.WallSeconds = reused, time.Since(started).Seconds()
	return r, nil
}

// single returns a run of a cell that is measured by itself.
func (l *Lab) single(s Settings) (*run, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	x, err := l.newRun(s, l.conditions())
	if err == nil {
		x.name, x.store, x.title = s.Name(), s.Name(), s.Engine+" "+s.Filter
	}
	return x, err
}

func (l *Lab) forget() error {
	if l.last == nil {
		return nil
	}
	dir := l.last.dir
	l.last = nil
	return os.RemoveAll(dir)
}

func (x *run) phase(name string, total int, unit string) *progress.Phase {
	return x.lab.Progress.Start(name+" "+x.title, total, unit)
}

// reopen opens the store, anew if it is open: with an empty block cache, and no
// memtable that takes room of it.
func (x *run) reopen() error {
	if err := x.close(); err != nil {
		return err
	}
	if err := x.open(); err != nil {
		return err
	}
	return x.openReaders()
}

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

// A tracedStore writes its lookups down.
type tracedStore interface {
	TraceLookups(t *lookuptrace.Tracer)
}

// Make builds the store of a cell in a directory that is not there yet, and writes a trace of
// lookups in it, of existing and of absent keys in turns. The lab's directory and that one are on
// one file system.
func (l *Lab) Make(ctx context.Context, s Settings, dir, trace string) (err error) {
	x, err := l.single(s)
	if err != nil {
		return err
	}
	s = x.settings
	if _, err := os.Stat(dir); err == nil {
		return bench.Usagef("%s is there already", dir)
	}
	if s.Engine != "siftkv" || s.Filter == engine.OracleFilter || s.Threads != 1 {
		return bench.Usagef("a store with a trace is one of siftkv, with a filter of this project, and one worker")
	}
	if x.source, err = s.Open(); err != nil {
		return err
	}
	if err := errors.Join(x.checkWorkload(), x.build(ctx)); err != nil {
		return err
	}
	if err := x.reopen(); err != nil {
		return err
	}
	if err := errors.Join(x.record(ctx, trace), x.close()); err != nil {
		return err
	}
	if err := os.Rename(x.built.dir, dir); err != nil {
		return fmt.Errorf("make a store: %w", err)
	}
	return nil
}

func (x *run) record(ctx context.Context, path string) error {
	store, ok := x.built.store.(tracedStore)
	if !ok {
		return bench.Usagef("%s writes no traces", x.settings.Engine)
	}
	err := record.Lookups(store, path, func() error { return x.askInTurns(ctx) })
	if bad := new(fs.PathError); errors.As(err, &bad) && bad.Op == "open" && bad.Path == path {
		return bench.Usagef("make a trace: %w", err)
	}
	return err
}

func (x *run) askInTurns(ctx context.Context) (err error) {
	both, total := x.askBoth(x.orders.timed, 0)
	phase := x.phase("look up", total, "lookups")
	defer phase.Done()
	var value []byte
	for i := range max(both[engine.Existing][0].Len(), both[engine.Absent][0].Len()) {
		for _, kind := range engine.Kinds {
			if s := both[kind][0]; i < s.Len() && err == nil {
				value, _, err = x.readers[kind][0].Get(value[:0], s.Key(i))
				phase.Add(1)
			}
		}
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// A Row is a cell that is measured in turn with others, which have the same keys, values,
// lookups and repetitions, and a warm cache.
type Row struct {
	Name     string // in reports, errors and progress; the first one of a store is the store's
	Settings Settings
}

// Interleave measures rows in turns: it builds all stores, warms every row up, and then
// visits all of them in each repetition, beginning with another one each time so that none
// always follows the same. So the rows of one repetition follow each other closely, and a slow
// minute of the machine hits all of them. Every row is asked exactly the same. A row with Spread gets
// a budget of the filter bytes of the row before it, if the two differ only in Spread.
//
// The environment is that before the lab's first rows: later ones would report the load of those.
func (l *Lab) Interleave(ctx context.Context, source keys.Source, rows []Row) (out []*Result, err error) {
	var runs []*run
	defer func() { err = errors.Join(err, closeAll(runs)) }()
	start := time.Now()
	if l.before == nil {
		l.before = new(l.conditions())
	}
	for _, row := range rows {
		x, err := l.newRun(row.Settings, *l.before)
		if err == nil {
			x.name, x.store, x.title, x.orders, x.source = row.Name, row.Name, row.Name, inTurns, source
			if n := len(runs); n > 0 {
				x.budget = runs[n-1].memoryFor(x)
			}
			runs = append(runs, x)
			err = x.share(ctx, runs)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", row.Name, err)
		}
	}
	if err := l.warmUp(ctx, runs); err != nil {
		return nil, err
	}
	for rep := range int(runs[0].settings.Reps) {
		if err := l.turn(ctx, runs, rep); err != nil {
			return nil, err
		}
	}
	for _, x := range runs {
		r := x.result()
		r.WallSeconds = time.Since(start).Seconds() / float64(len(runs)) // its part
		out = append(out, r)
	}
	return out, nil
}

// memoryFor returns the bytes of the filters, if other differs in Spread alone.
func (x *run) memoryFor(other *run) int64 {
	s := x.settings
	if s.Budget == Spread {
		return 0
	}
	if s.Budget = Spread; s != other.settings {
		return 0
	}
	return x.built.shape.Total().FilterBytes
}

// share opens the readers of a row on the store that a row before it has built, or on one of
// its own.
func (x *run) share(ctx context.Context, runs []*run) error {
	for _, other := range runs[:len(runs)-1] {
		if other.built.text == x.settings.BuildText() {
			x.built = other.built
			return x.openReaders()
		}
	}
	if err := x.checkWorkload(); err != nil {
		return err
	}
	if err := x.build(ctx); err != nil {
		return err
	}
	return x.reopen()
}

func (l *Lab) warmUp(ctx context.Context, runs []*run) error {
	asked, n := runs[0].askBoth(inTurns.warmup, 0)
	phase := l.Progress.Start("warm up", n*len(runs), "lookups")
	for _, x := range runs {
		for _, kind := range engine.Kinds {
			if err := x.throughput(ctx, kind, asked[kind]); err != nil {
				return fmt.Errorf("%s: %w", x.name, err)
			}
		}
		phase.Add(n)
	}
	phase.Done()
	return nil
}

// turn is one repetition of every row.
func (l *Lab) turn(ctx context.Context, runs []*run, rep int) error {
	timed, n := runs[0].askBoth(inTurns.timed, rep)
	single, m := runs[0].askBoth(inTurns.single, rep)
	n += m
	phase := l.Progress.Start(fmt.Sprintf("repetition %d of %d", rep+1, runs[0].settings.Reps), n*len(runs), "lookups")
	for i := range runs {
		x := runs[(i+rep)%len(runs)]
		for _, kind := range engine.Kinds {
			if err := x.repeat(ctx, kind, timed[kind], single[kind]); err != nil {
				return fmt.Errorf("%s: %w", x.name, err)
			}
		}
		phase.Add(n)
	}
	phase.Done()
	return nil
}

// closeAll closes the readers of all runs, then their stores.
func closeAll(runs []*run) error {
	var errs []error
	for _, x := range runs {
		errs = append(errs, x.closeReaders())
	}
	for _, x := range runs {
		errs = append(errs, x.built.close())
	}
	return errors.Join(errs...)
}

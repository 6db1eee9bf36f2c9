package cell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/environ"
	"github.com/siftkv/siftkv/internal/bench/keys"
	"github.com/siftkv/siftkv/internal/bench/measure"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// A Lab runs cells, one at a time, in a temporary directory of its own.
type Lab struct {
	Argv     []string
	Progress *progress.Reporter

	// Wrap, if set, stands between a cell and each store it opens.
	Wrap func(cell string, s engine.Store) engine.Store

	dir   string
	store *built // of the last cell
}

// NewLab makes the directory in parent, the system's if that is empty. The caller
// closes the lab.
func NewLab(parent string, argv []string, p *progress.Reporter) (*Lab, error) {
	if info, err := os.Stat(parent); parent != "" && (err != nil || !info.IsDir()) {
		return nil, bench.Usagef("--dir %s: not a directory; create it or choose another", parent)
	}
	dir, err := os.MkdirTemp(parent, "kvbench-cells-*")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the stores: %w", err)
	}
	return &Lab{Argv: argv, Progress: p, dir: dir}, nil
}

// Close removes the directory with everything in it.
func (l *Lab) Close() error { return os.RemoveAll(l.dir) }

// A run is a cell under way.
type run struct {
	lab      *Lab
	settings Settings
	variant  *engine.Variant
	values   keys.Values
	source   keys.Source

	store   engine.Store                    // nil while it is not open
	readers map[engine.Kind][]engine.Reader // one for each worker

	absentDistinct float64 // of the lookups of absent keys, once they were made; see distinct
}

// Run measures one cell. A wrong answer ends it with an error that matches
// bench.ErrWrongAnswer; counters that do not add up are in the result, see
// Identities.Err.
func (l *Lab) Run(ctx context.Context, s Settings) (r *Result, err error) {
	started := time.Now()
	if err := s.Check(); err != nil {
		return nil, err
	}
	x := &run{lab: l, settings: s}
	if x.variant, err = s.variant(); err != nil {
		return nil, err
	}
	if x.values, err = s.values(); err != nil {
		return nil, err
	}
	reused := l.store != nil && l.store.text == s.BuildText()
	if reused {
		x.source = l.store.source
	} else {
		if err := l.forget(); err != nil {
			return nil, err
		}
		if x.source, err = keys.Open(s.request()); err != nil {
			return nil, err
		}
	}
	if err := x.checkReplay(); err != nil {
		return nil, err
	}
	env := environ.Capture(l.Argv, l.dir) // before anything loads the machine
	env.Dir = filepath.Dir(l.dir)
	if !reused {
		if l.store, err = x.build(ctx); err != nil {
			l.store = nil
			return nil, err
		}
	}
	defer func() { err = errors.Join(err, x.close()) }()
	r = &Result{
		Schema: Schema, Name: s.Name(), Settings: s, Environment: env,
		Keys: x.source.Describe(), Build: l.store.about, Shape: l.store.shape,
		TimerNs: int64(measure.TimerCost()),
	}
	r.Build.Reused = reused
	if err := x.measure(ctx, r); err != nil {
		return nil, err
	}
	x.finish(r)
	r.WallSeconds = time.Since(started).Seconds()
	return r, nil
}

// forget removes the store of the last cell.
func (l *Lab) forget() error {
	if l.store == nil {
		return nil
	}
	dir := l.store.dir
	l.store = nil
	return os.RemoveAll(dir)
}

// phase starts a phase of the cell.
func (x *run) phase(name string, total int, unit string) *progress.Phase {
	return x.lab.Progress.Start(name+" "+x.settings.Engine+" "+x.settings.Filter, total, unit)
}

// reopen opens the store, anew if it is open: with an empty block cache, and no
// memtable that takes room of it.
func (x *run) reopen() error {
	if err := x.close(); err != nil {
		return err
	}
	store, err := x.open(x.lab.store, nil)
	if err != nil {
		return err
	}
	x.store, x.readers = store, map[engine.Kind][]engine.Reader{}
	for _, kind := range engine.Kinds {
		for range x.settings.Threads {
			r, err := store.NewReader(x.variant.Access, kind)
			if err != nil {
				return err
			}
			x.readers[kind] = append(x.readers[kind], r)
		}
	}
	return nil
}

// close closes readers, then the store.
func (x *run) close() error {
	var errs []error
	for _, kind := range engine.Kinds {
		for _, r := range x.readers[kind] {
			errs = append(errs, r.Close())
		}
	}
	if x.store != nil {
		errs = append(errs, x.store.Close())
	}
	x.store, x.readers = nil, nil
	return errors.Join(errs...)
}

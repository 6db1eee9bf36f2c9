package readamp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/environ"
	"github.com/siftkv/siftkv/internal/bench/keys"
	"github.com/siftkv/siftkv/internal/bench/measure"
)

// An experiment is a run under way. It is used by one goroutine.
type experiment struct {
	config *Config
	source keys.Source
	values keys.Values
	dir    string
	stores []*builtStore
	rows   []*openRow
	budget filterpolicy.Policy // nil: no comparison with a budget
}

// Run measures what the config says. Its stores live in a temporary directory
// that is gone when it returns, whatever happens. A wrong answer ends the run
// with an error that matches bench.ErrWrongAnswer; counters that do not add up
// are in the result, see Identities.Err.
func Run(ctx context.Context, c *Config) (result *Result, err error) {
	started := time.Now()
	x := &experiment{config: c}
	plans, err := x.prepare()
	if err != nil {
		return nil, err
	}
	if x.dir, err = os.MkdirTemp(c.Dir, "kvbench-readamp-*"); err != nil {
		return nil, fmt.Errorf("make a directory for the stores: %w", err)
	}
	defer func() { err = errors.Join(err, x.close(), os.RemoveAll(x.dir)) }()

	result = x.newResult()
	for i, p := range plans {
		if err := x.build(ctx, p, fmt.Sprintf("store-%02d", i)); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	if err := x.measure(ctx); err != nil {
		return nil, err
	}
	if x.budget != nil {
		if result.Budget, err = x.compareBudget(ctx); err != nil {
			return nil, err
		}
	}
	x.fill(result)
	result.WallSeconds = time.Since(started).Seconds()
	return result, nil
}

// prepare checks the config and reads the keys, before anything is written.
func (x *experiment) prepare() ([]storePlan, error) {
	c := x.config
	if err := c.validate(); err != nil {
		return nil, err
	}
	if info, err := os.Stat(c.Dir); c.Dir != "" && (err != nil || !info.IsDir()) {
		return nil, bench.Usagef("--dir %s: not a directory; create it or choose another", c.Dir)
	}
	var err error
	if x.values, err = keys.NewValues(c.ValueSize, c.Seed); err != nil {
		return nil, err
	}
	plans, err := plan(c, x.values)
	if err != nil {
		return nil, err
	}
	if x.budget, err = budgetPolicy(c); err != nil {
		return nil, err
	}
	phase := c.Progress.Start("read keys", 0, "")
	if x.source, err = keys.Open(c.Keys); err != nil {
		return nil, err
	}
	phase.Done()
	return plans, nil
}

// newResult records what is known before the first store is built: the load of
// the machine, above all.
func (x *experiment) newResult() *Result {
	c := x.config
	r := &Result{
		Schema:      Schema,
		Environment: environ.Capture(c.Argv, x.dir),
		Keys:        x.source.Describe(),
		TimerNs:     int64(measure.TimerCost()),
		Settings: Settings{
			Engines: c.Engines, Filters: c.Filters, Compaction: c.Compaction, ValueBytes: c.ValueSize,
			Lookups: c.Lookups, LatencyLookups: latencyLookups(c.Lookups), WarmupLookups: c.Lookups,
			Repetitions: c.Repetitions, Seed: c.Seed, Store: c.Store,
		},
	}
	if x.budget != nil {
		r.Settings.Budget = x.budget.String()
	}
	r.Environment.Dir = filepath.Dir(x.dir)
	return r
}

// fill adds what the run found out.
func (x *experiment) fill(r *Result) {
	for _, s := range x.stores {
		if s.plan.engine != Null {
			r.Stores = append(r.Stores, s.result)
		}
	}
	for _, row := range x.rows {
		r.Rows = append(r.Rows, x.finishRow(row))
	}
	r.Comparisons = compare(r.Rows)
	r.Identities = checkIdentities(r)
	r.Notes = notes(r)
	r.Warnings = append(r.Warnings, r.Environment.Warnings...)
	if r.Budget != nil {
		r.Warnings = append(r.Warnings, r.Budget.warnings()...)
	}
	for _, s := range r.Stores {
		if !s.Settled {
			r.Warnings = append(r.Warnings,
				fmt.Sprintf("%s is not settled: its files are in %d levels", s.Name, len(s.Shape.Levels)))
		}
	}
}

// finishRow summarises both kinds of lookups of a row.
func (x *experiment) finishRow(row *openRow) Row {
	shape := row.store.result.Shape.Total()
	out := Row{
		Name: row.plan.name, Engine: row.store.plan.engine, Filter: row.store.plan.filter, Access: row.plan.access,
		Store: row.store.plan.name, BitsPerKey: shape.BitsPerKey(),
	}
	if theory := row.store.plan.theory; theory != nil && shape.Files > 0 {
		out.Theory = theory(int(shape.Entries) / shape.Files)
	}
	for _, kind := range engine.Kinds {
		asked := float64(x.config.Lookups) * float64(x.config.Repetitions)
		distinct := min(1, float64(measure.Domain(x.source, kind))/asked)
		*out.Phase(kind) = measure.Summarise(row.reps[kind], row.latency[kind], distinct)
	}
	return out
}

// close closes readers, then stores.
func (x *experiment) close() error {
	var errs []error
	for _, row := range x.rows {
		for _, r := range row.readers {
			errs = append(errs, r.Close())
		}
	}
	for _, s := range x.stores {
		if s.store != nil {
			errs = append(errs, s.store.Close())
		}
	}
	return errors.Join(errs...)
}

package readamp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/filterpolicy"
)

// An experiment is a run under way. It is used by one goroutine.
type experiment struct {
	config *Config
	lab    *cell.Lab
	rows   []row
	source keys.Source
	values keys.Values
	budget filterpolicy.Policy // nil: no comparison with a budget
}

// Run measures what the config says. Its stores live in a temporary directory
// that is gone when it returns, whatever happens. A wrong answer ends the run
// with an error that matches bench.ErrWrongAnswer; counters that do not add up
// are in the result, see Identities.Err.
func Run(ctx context.Context, c *Config) (result *Result, err error) {
	started := time.Now()
	x, err := c.experiment()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.lab.Close()) }()
	phase := c.Progress.Start("read keys", 0, "")
	if x.source, err = keys.Open(c.Keys); err != nil {
		return nil, err
	}
	phase.Done()
	result = x.newResult()
	var cells []cell.Row
	for _, r := range x.rows {
		cells = append(cells, cell.Row{Name: r.name, Store: r.store, Settings: c.cell(r)})
	}
	measured, err := x.lab.Interleave(ctx, x.source, cells)
	if err != nil {
		return nil, err
	}
	if x.budget != nil {
		if result.Budget, err = x.compareBudget(ctx); err != nil {
			return nil, err
		}
	}
	x.fill(result, measured)
	result.WallSeconds = time.Since(started).Seconds()
	return result, nil
}

// experiment checks the config.
func (c *Config) experiment() (x *experiment, err error) {
	x = &experiment{config: c}
	if err := c.validate(); err != nil {
		return nil, err
	}
	if x.values, err = keys.NewValues(c.ValueBytes, c.Seed); err != nil {
		return nil, err
	}
	if x.rows, err = c.rows(); err != nil {
		return nil, err
	}
	if x.budget, err = c.budgetPolicy(); err != nil {
		return nil, err
	}
	if x.lab, err = cell.NewLab(c.Dir, c.Argv, c.Progress); err != nil {
		return nil, err
	}
	x.lab.Wrap, x.lab.Compactions, x.lab.BatchKeys = c.Wrap, c.Store.Compactions, c.Store.BatchKeys
	return x, nil
}

// newResult records what is known before the first store is built: the load of
// the machine, above all.
func (x *experiment) newResult() *Result {
	c := x.config
	r := &Result{
		Schema:      Schema,
		Environment: x.lab.Environment(),
		Keys:        x.source.Describe(),
		TimerNs:     int64(measure.TimerCost()),
		Settings:    c.Settings,
	}
	r.Settings.LatencyLookups, r.Settings.WarmupLookups = cell.SingleLookups(c.Lookups), c.Lookups
	r.Settings.Budget = ""
	if x.budget != nil {
		r.Settings.Budget = x.budget.String()
	}
	return r
}

// fill adds what the run found out.
func (x *experiment) fill(r *Result, measured []*cell.Result) {
	for i, row := range x.rows {
		m := measured[i]
		if row.name != Null && r.store(row.store) == nil {
			r.Stores = append(r.Stores, StoreResult{
				Name: row.store, Engine: row.engine, Filter: row.filter, LoadSeconds: m.Build.LoadSeconds,
				SettleSeconds: m.Build.SettleSeconds, Settled: m.Build.Settled, Shape: m.Shape,
			})
		}
		r.Rows = append(r.Rows, Row{
			Name: row.name, Engine: row.engine, Filter: row.filter, Access: row.access, Store: row.store,
			BitsPerKey: m.BitsPerKey, Theory: m.Theory, Existing: m.Existing.Phase, Absent: m.Absent.Phase,
		})
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

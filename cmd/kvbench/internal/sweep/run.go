package sweep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// A Config says how to run a plan.
type Config struct {
	Plan     *Plan
	Out      string // directory of the results
	Force    bool   // run cells that have a result
	Lab      *cell.Lab
	Progress *progress.Reporter
}

// An Outcome is what came of a sweep.
type Outcome struct {
	Results []*cell.Result // of the cells that have one, in the order of the plan
	Run     int            // cells that were run
	Kept    int            // cells that had a result already
	Failed  []Failure
	Mixed   []string // revisions of kvbench that made the results, if there are several
}

// A Failure is a cell without a result.
type Failure struct {
	Cell string
	Err  error
}

// Run runs the cells of a plan that have no result yet, and writes each as it is done.
// A cell that fails does not stop the others: it is in the outcome and in the error.
// Of a context that ends the error is that of the context, and the outcome says what
// is done.
func Run(ctx context.Context, c *Config) (*Outcome, error) {
	o := &Outcome{}
	start, n := time.Now(), len(c.Plan.Cells)
	for i, s := range c.Plan.Cells {
		if !c.Force {
			found, err := results.Find(c.Out, s)
			if err != nil {
				return o, err
			}
			if found != nil {
				o.Results, o.Kept = append(o.Results, found), o.Kept+1
				continue
			}
		}
		r, err := c.one(ctx, s)
		switch {
		case ctx.Err() != nil:
			return o, ctx.Err()
		case errors.Is(err, errSave):
			return o, err // the others would fare no better
		case err != nil:
			o.Failed = append(o.Failed, Failure{s.Name(), err})
			c.Progress.Line("cell %d of %d failed: %s: %v", i+1, n, s.Name(), err)
		default:
			o.Results = append(o.Results, r)
			o.Run++
			c.Progress.Line("cell %d of %d done: %s in %.1f s%s", i+1, n, s.Name(), r.WallSeconds,
				left(time.Since(start), o.Run+len(o.Failed), n-i-1))
		}
	}
	o.revisions()
	return o, o.err()
}

// errSave marks a result that could not be written.
var errSave = errors.New("cannot write the result")

// one runs and saves one cell.
func (c *Config) one(ctx context.Context, s cell.Settings) (*cell.Result, error) {
	r, err := c.Lab.Run(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := r.Identities.Err(); err != nil {
		return nil, err
	}
	if err := results.Save(c.Out, r); err != nil {
		return nil, fmt.Errorf("%w: %w", errSave, err)
	}
	return r, nil
}

// left estimates the time that the remaining cells take, at most, since some of them
// may have their result already.
func left(took time.Duration, done, remaining int) string {
	if remaining == 0 || done == 0 {
		return ""
	}
	return fmt.Sprintf(", about %s left", (took / time.Duration(done) * time.Duration(remaining)).Round(time.Second))
}

// revisions notes by which builds the results were made.
func (o *Outcome) revisions() {
	for _, r := range o.Results {
		if rev := r.Environment.Revision; !slices.Contains(o.Mixed, rev) {
			o.Mixed = append(o.Mixed, rev)
		}
	}
	if len(o.Mixed) < 2 {
		o.Mixed = nil
	}
}

// err returns an error if cells failed: that of a wrong answer if there was one.
func (o *Outcome) err() error {
	if len(o.Failed) == 0 {
		return nil
	}
	for _, f := range o.Failed {
		if errors.Is(f.Err, bench.ErrWrongAnswer) || errors.Is(f.Err, bench.ErrIdentity) {
			return fmt.Errorf("%s: %w", f.Cell, f.Err)
		}
	}
	f := o.Failed[0]
	return fmt.Errorf("%w: %d of %d, the first %s: %w; run again to try them again", bench.ErrSomeFailed,
		len(o.Failed), len(o.Failed)+len(o.Results), f.Cell, f.Err)
}

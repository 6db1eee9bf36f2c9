package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/report"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/sweep"
)

// sweepCommand is the command line of kvbench sweep.
type sweepCommand struct {
	cellFlags `group:"Settings of a cell"`
	dirFlag
	Spec  string    `placeholder:"FILE" help:"${sweep_spec}"`
	Out   resultDir `default:"results" placeholder:"DIR" help:"${sweep_out}"`
	Force bool      `help:"Run cells again that have a result."`
	Plan  bool      `help:"List the cells and run nothing."`
}

// Help shows examples, and what is behind them.
func (sweepCommand) Help() string { return texts().Details["sweep"] }

// Run runs the cells that have no result yet and prints the tables of all.
func (c *sweepCommand) Run(ctx context.Context, p *program) (err error) {
	plan, err := c.plan()
	if err != nil {
		return err
	}
	for _, text := range plan.Skipped {
		_, _ = fmt.Fprintf(p.stderr, "kvbench: left out: %s\n", text)
	}
	if c.Plan {
		for _, s := range plan.Cells {
			if _, err := fmt.Fprintf(p.stdout, "%s\n  %s\n", s.Name(), s.Text()); err != nil {
				return err
			}
		}
		return nil
	}
	if err := c.Out.prepare("--out"); err != nil {
		return err
	}
	lab, err := c.lab(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	done, err := sweep.Run(ctx, &sweep.Config{Plan: plan, Out: string(c.Out), Force: c.Force, Lab: lab,
		Progress: p.progress})
	if ctx.Err() != nil {
		_, _ = fmt.Fprintf(p.stderr, "kvbench: %d of %d cells are done and in %s; run the same command again to go "+
			"on\n",
			len(done.Results), len(plan.Cells), c.Out)
		return err
	}
	if done.Kept > 0 {
		_, _ = fmt.Fprintf(p.stderr, "kvbench: %d of %d cells had a result in %s; --force runs them again\n",
			done.Kept, len(plan.Cells), c.Out)
	}
	if done.Mixed != nil {
		_, _ = fmt.Fprintf(p.stderr, "kvbench: the results come from several revisions: %s; --force makes them anew\n",
			strings.Join(done.Mixed, ", "))
	}
	if len(done.Results) > 0 {
		if err := report.Cells(p.stdout, done.Results); err != nil {
			return err
		}
	}
	return err
}

// plan reads the specification and puts the flags over it.
func (c *sweepCommand) plan() (*sweep.Plan, error) {
	spec := &sweep.Spec{Settings: sweep.Block{}}
	if c.Spec != "" {
		read, err := sweep.ReadSpec(c.Spec)
		if err != nil {
			return nil, err
		}
		if spec = read; spec.Settings == nil {
			spec.Settings = sweep.Block{}
		}
	}
	flags := c.block()
	maps.Copy(spec.Settings, flags)
	for _, also := range spec.Also {
		for name := range flags {
			delete(also, name)
		}
	}
	return spec.Plan()
}

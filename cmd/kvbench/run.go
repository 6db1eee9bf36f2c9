package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/sweep"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/traceinfo"
	"github.com/siftkv/siftkv/internal/cli"
)

type runCommand struct {
	cellFlags `group:"Settings of a cell"`
	dirFlag
	Out resultDir `placeholder:"DIR" help:"Also write the result to DIR, under the name of the cell."`
	jsonFlag
}

// inLab calls use with the place where cells run, which is gone when it returns.
func (f *dirFlag) inLab(p *program, use func(*cell.Lab) error) error {
	l, err := cell.NewLab(f.Dir, p.argv, p.progress)
	if err != nil {
		return err
	}
	l.Wrap = p.wrap
	return errors.Join(use(l), l.Close())
}

// Run measures the cell and prints it. Broken identities are an error, but only after
// the result is out.
func (c *runCommand) Run(ctx context.Context, p *program) error {
	of, err := c.one()
	if err != nil {
		return err
	}
	if err := c.Out.prepare("--out"); err != nil {
		return err
	}
	return c.inLab(p, func(lab *cell.Lab) error {
		r, err := lab.Run(ctx, of)
		if err != nil {
			return err
		}
		err = show(p, report.Cell, c.JSON)(r, nil)
		if c.Out != "" {
			err = errors.Join(err, results.Save(string(c.Out), r))
		}
		return errors.Join(err, r.Identities.Err())
	})
}

type sweepCommand struct {
	cellFlags `group:"Settings of a cell"`
	dirFlag
	Spec  string    `placeholder:"FILE" help:"${sweep_spec}"`
	Out   resultDir `default:"results" placeholder:"DIR" help:"${sweep_out}"`
	Force bool      `help:"Run cells again that have a result."`
	Plan  bool      `help:"List the cells and run nothing."`
}

// Run runs the cells that have no result yet and prints the tables of all.
func (c *sweepCommand) Run(ctx context.Context, p *program) error {
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
	var done *sweep.Outcome
	err = c.inLab(p, func(lab *cell.Lab) (err error) {
		done, err = sweep.Run(ctx, &sweep.Config{Plan: plan, Out: string(c.Out), Force: c.Force, Lab: lab,
			Progress: p.progress})
		return err
	})
	if done == nil {
		return err
	}
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
		_, _ = fmt.Fprintf(p.stderr, "kvbench: the results come from several revisions: %s; --force runs all again\n",
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

type traceCommand struct {
	Info   traceInfoCommand   `cmd:"" help:"What is in a trace: lookups, keys, how uneven, what lacks."`
	Replay traceReplayCommand `cmd:"" help:"Replay a trace on an engine with a filter."`
	Make   traceMakeCommand   `cmd:"" help:"A store of a cell, and a trace of lookups in it."`
}

type traceInfoCommand struct {
	File cli.File `arg:"" help:"Trace that lookuptrace.Tracer wrote."`
	rowsFlags
}

func (c *traceInfoCommand) Run(ctx context.Context, p *program) error {
	return c.show(p)(traceinfo.Read(ctx, string(c.File), p.argv))
}

// traceReplayCommand is the command line of kvbench trace replay: run, with the keys and
// the workload of a trace.
type traceReplayCommand struct {
	File string `arg:"" help:"Trace that lookuptrace.Tracer wrote."`
	runCommand
}

// replayLookups is how many lookups are replayed if nothing is said.
const replayLookups = 1_000_000

func (c *traceReplayCommand) Run(ctx context.Context, p *program) error {
	if len(c.Keys) > 0 || len(c.Workload) > 0 {
		return bench.Usagef("--keys, --workload: a replay takes both from the trace; kvbench run --keys %s has the "+
			"trace's keys with another workload", c.File)
	}
	c.Keys, c.Workload = []string{c.File}, []string{cell.Replay}
	if keys.IsCount(c.File) {
		c.Keys[0] = "./" + c.File // not a number of keys
	}
	if len(c.Lookups) == 0 {
		c.Lookups = []string{strconv.Itoa(replayLookups)}
	}
	return c.runCommand.Run(ctx, p)
}

type traceMakeCommand struct {
	Dir       string `arg:"" help:"Directory for the store and the trace; it is made."`
	cellFlags `group:"Settings of a cell"`
}

func (c *traceMakeCommand) Run(ctx context.Context, p *program) error {
	of, err := c.one()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return bench.Usagef("trace make: %w", err)
	}
	store, trace := filepath.Join(c.Dir, "store"), filepath.Join(c.Dir, "lookups.trace")
	return (&dirFlag{c.Dir}).inLab(p, func(lab *cell.Lab) error {
		if err := lab.Make(ctx, of, store, trace); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.stdout, "%s\n%s\n", store, trace)
		return err
	})
}

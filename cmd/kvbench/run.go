package main

import (
	"context"
	"errors"

	"github.com/siftkv/siftkv/internal/bench/cell"
	"github.com/siftkv/siftkv/internal/bench/report"
	"github.com/siftkv/siftkv/internal/bench/results"
	"github.com/siftkv/siftkv/internal/bench/sweep"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// runCommand is the command line of kvbench run.
type runCommand struct {
	cellFlags
	labFlags
	Out  resultDir  `placeholder:"DIR" help:"Also write the result to DIR, under the name of the cell."`
	JSON resultFile `name:"json" placeholder:"FILE" help:"Also write the result to FILE; - prints it in place of the text."`
}

// labFlags say where cells run, and how loudly.
type labFlags struct {
	Dir      string `placeholder:"DIR" help:"Where to make the temporary stores; they are removed at the end (default: the system's temporary directory)."`
	Quiet    bool   `short:"q" help:"No progress."`
	Progress string `default:"auto" enum:"auto,plain,none" placeholder:"MODE" help:"Progress on standard error: auto (a bar on a terminal, else plain), plain (lines) or none (default ${default})."`
}

// Help shows examples.
func (runCommand) Help() string {
	return `Examples:
  kvbench run                                         one million keys, blocked:10, settled
  kvbench run --filter cuckoo:12 --shape grown --cache 8MiB
  kvbench run --engine pebble --filter own:10 --shape young:8
  kvbench run --keys urls.txt.gz --state cold --out results`
}

// lab makes the place where cells run.
func (f *labFlags) lab(p *program) (*cell.Lab, *progress.Reporter, error) {
	if f.Quiet {
		f.Progress = "none"
	}
	reporter := progress.New(p.stderr, f.Progress)
	l, err := cell.NewLab(f.Dir, p.argv, reporter)
	if err == nil {
		l.Wrap = p.wrap
	}
	return l, reporter, err
}

// Run measures the cell and prints it. Broken identities are an error, but only after
// the result is out.
func (c *runCommand) Run(ctx context.Context, p *program) (err error) {
	block, err := c.one()
	if err != nil {
		return err
	}
	plan, err := (&sweep.Spec{Settings: block}).Plan()
	if err != nil {
		return err
	}
	if err := c.Out.prepare("--out"); err != nil {
		return err
	}
	lab, _, err := c.lab(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	r, err := lab.Run(ctx, plan.Cells[0])
	if err != nil {
		return err
	}
	err = show(p, report.Cell, r, c.JSON)
	if c.Out != "" {
		err = errors.Join(err, results.Save(string(c.Out), r))
	}
	return errors.Join(err, r.Identities.Err())
}

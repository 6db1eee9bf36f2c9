package main

import (
	"context"
	"errors"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/sweep"
)

// runCommand is the command line of kvbench run.
type runCommand struct {
	cellFlags `group:"Settings of a cell"`
	dirFlag
	Out resultDir `placeholder:"DIR" help:"Also write the result to DIR, under the name of the cell."`
	jsonFlag
}

// lab makes the place where cells run.
func (f *dirFlag) lab(p *program) (*cell.Lab, error) {
	l, err := cell.NewLab(f.Dir, p.argv, p.progress)
	if err == nil {
		l.Wrap = p.wrap
	}
	return l, err
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
	lab, err := c.lab(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	r, err := lab.Run(ctx, plan.Cells[0])
	if err != nil {
		return err
	}
	err = show(p, report.Cell, c.JSON)(r, nil)
	if c.Out != "" {
		err = errors.Join(err, results.Save(string(c.Out), r))
	}
	return errors.Join(err, r.Identities.Err())
}

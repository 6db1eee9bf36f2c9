package main

import (
	"io"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/report"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
)

// diffCommand is the command line of kvbench diff.
type diffCommand struct {
	A      string   `arg:"" help:"First set: a directory of results, or a file."`
	B      string   `arg:"" help:"Second set."`
	FailOn []string `sep:"none" placeholder:"LIMITS" help:"${diff_failon}"`
	All    bool     `help:"Show what did not change, too."`
	jsonFlag
}

// Help shows examples, and what is behind them.
func (diffCommand) Help() string { return texts().Details["diff"] }

// Run compares and prints; a limit that is passed is an error after that.
func (c *diffCommand) Run(p *program) error {
	limits, err := results.ParseLimits(c.FailOn)
	if err != nil {
		return err
	}
	a, err := results.Load(c.A)
	if err != nil {
		return err
	}
	b, err := results.Load(c.B)
	if err != nil {
		return err
	}
	d, err := results.Compare(a, b, limits)
	text := func(w io.Writer, d *results.Diff) error { return report.Diff(w, d, c.All) }
	if err := show(p, text, c.JSON)(d, err); err != nil {
		return err
	}
	return d.Err()
}

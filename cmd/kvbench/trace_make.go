package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/sweep"
)

// traceMakeCommand is the command line of kvbench trace make.
type traceMakeCommand struct {
	Dir       string `arg:"" help:"Directory for the store and the trace; it is made."`
	cellFlags `group:"Settings of a cell"`
}

// Help shows examples, and what is behind them.
func (traceMakeCommand) Help() string { return texts().Details["trace make"] }

// Run makes both.
func (c *traceMakeCommand) Run(ctx context.Context, p *program) (err error) {
	block, err := c.one()
	if err != nil {
		return err
	}
	plan, err := (&sweep.Spec{Settings: block}).Plan()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return bench.Usagef("trace make: %w", err)
	}
	at := dirFlag{}
	at.Dir = c.Dir
	lab, err := at.lab(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	store, trace := filepath.Join(c.Dir, "store"), filepath.Join(c.Dir, "lookups.trace")
	if err := lab.Make(ctx, plan.Cells[0], store, trace); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "%s\n%s\n", store, trace)
	return err
}

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/doctor"
	"github.com/siftkv/siftkv/internal/doctor/repair"
	"github.com/siftkv/siftkv/internal/survey"
)

type statsCommand struct{ Dir }

// Run prints the shape of the store, as far as it can be read.
func (c *statsCommand) Run(ctx context.Context, p *program) error {
	s, err := survey.Shape(ctx, string(c.Dir.Dir))
	if err != nil {
		return err
	}
	return p.report(s)
}

type verifyCommand struct{ Dir }

// Run prints a line per file and one per damaged place, which is exit status 4.
func (c *verifyCommand) Run(ctx context.Context, p *program) error {
	s, err := p.verify(ctx, c.Dir.Dir)
	if err != nil {
		return err
	}
	if err := p.report(s.Verdict()); err != nil && !gone(err) || len(s.Damage) == 0 {
		return err
	}
	return fmt.Errorf("%w: %d places; run: siftkv repair %s --dry-run", errDamage, len(s.Damage), c.Dir.Dir)
}

// verify checks a store, and shows how far it is.
func (p *program) verify(ctx context.Context, dir cli.Directory) (*survey.Store, error) {
	step, end := p.progress()
	defer end()
	return doctor.Verify(ctx, string(dir), survey.Options{Progress: step})
}

type repairCommand struct {
	Dir
	DryRun bool          `help:"Say what would be done and lost, and change nothing."`
	Out    cli.Directory `placeholder:"DIR" help:"${out}"`
}

// Run repairs and reports; something that was certainly lost is exit status 4.
func (c *repairCommand) Run(ctx context.Context, p *program) error {
	step, end := p.progress()
	r, err := repair.Run(ctx, string(c.Dir.Dir), repair.Options{DryRun: c.DryRun, Out: string(c.Out), Progress: step})
	end()
	if r == nil {
		return err
	}
	printed := p.report(r)
	if err == nil && (printed == nil || gone(printed)) && r.LostForSure() {
		return fmt.Errorf("%w%w", silent{errDamage}, errQuiet)
	}
	return errors.Join(err, printed)
}

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/doctor/repair"
)

// repairCommand is the command line of siftkv repair.
type repairCommand struct {
	Dir
	DryRun bool          `help:"Say what would be done and lost, and change nothing."`
	Out    cli.Directory `placeholder:"DIR" help:"Write the repaired store to DIR, and leave the original as it is. By default it is repaired in place, and originals that it does without are moved to its directory lost."`
}

// Run repairs and reports; something that was certainly lost is exit status 4.
func (c *repairCommand) Run(ctx context.Context, p *program) error {
	step, end := p.progress()
	r, err := repair.Run(ctx, string(c.Dir.Dir), repair.Options{DryRun: c.DryRun, Out: string(c.Out), Progress: step})
	end()
	if r == nil {
		return err
	}
	var perr error
	if p.JSON {
		perr = p.printJSON(r, true)
	} else {
		perr = r.WriteText(p.out)
	}
	if err == nil && (perr == nil || gone(perr)) && r.LostForSure() {
		return fmt.Errorf("%w%w", silent{errDamage}, errQuiet)
	}
	return errors.Join(err, perr)
}

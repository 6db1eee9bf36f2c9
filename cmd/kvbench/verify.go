package main

import (
	"context"
	"fmt"

	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/doctor"
	"github.com/siftkv/siftkv/internal/survey"
)

// verifyCommand is the command line of kvbench verify.
type verifyCommand struct {
	Dir cli.Directory `arg:"" help:"Directory of a SiftKV store that no process has open."`
}

// Run prints one line per file; damage is an error.
func (c *verifyCommand) Run(ctx context.Context, p *program) error {
	s, err := doctor.Verify(ctx, string(c.Dir), survey.Options{})
	if err != nil {
		return err
	}
	if err := s.Verdict().WriteText(p.stdout); err != nil {
		return err
	}
	if n := len(s.Damage); n > 0 {
		return fmt.Errorf("%d damaged places in %s, the first in %s; run: siftkv repair %s --dry-run", n, c.Dir,
			s.Damage[0], c.Dir)
	}
	return nil
}

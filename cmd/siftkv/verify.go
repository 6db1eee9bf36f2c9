package main

import (
	"context"
	"fmt"

	"github.com/siftkv/siftkv/internal/doctor"
	"github.com/siftkv/siftkv/internal/survey"
)

// verifyCommand is the command line of siftkv verify.
type verifyCommand struct{ Dir }

// Run prints a line per file and one per damaged place, which is exit status 4.
func (c *verifyCommand) Run(ctx context.Context, p *program) error {
	step, end := p.progress()
	s, err := doctor.Verify(ctx, string(c.Dir.Dir), survey.Options{Progress: step})
	end()
	if err != nil {
		return err
	}
	if p.JSON {
		err = p.printJSON(s.Verdict(), true)
	} else {
		err = s.Verdict().WriteText(p.out)
	}
	if err != nil && !gone(err) || len(s.Damage) == 0 {
		return err
	}
	return fmt.Errorf("%w: %d places; run: siftkv repair %s --dry-run", errDamage, len(s.Damage), c.Dir.Dir)
}

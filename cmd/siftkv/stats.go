package main

import (
	"context"

	"github.com/siftkv/siftkv/internal/survey"
)

// statsCommand is the command line of siftkv stats.
type statsCommand struct{ Dir }

// Run prints the shape of the store, as far as it can be read.
func (c *statsCommand) Run(ctx context.Context, p *program) error {
	s, err := survey.Shape(ctx, string(c.Dir.Dir))
	if err != nil {
		return err
	}
	if p.JSON {
		return p.printJSON(s, true)
	}
	return s.WriteText(p.out)
}

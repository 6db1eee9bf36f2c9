package main

import (
	"context"

	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/kv"
)

// checkpointCommand is the command line of siftkv checkpoint.
type checkpointCommand struct {
	Dir
	Out cli.Directory `arg:"" help:"Directory of the copy, not there or empty."`
}

// Run makes a checkpoint.
func (c *checkpointCommand) Run(ctx context.Context, p *program) error {
	err := c.write(nil, func(db *kv.DB) error { return db.CheckpointContext(ctx, string(c.Out)) })
	if err == nil && p.JSON {
		return p.printJSON(map[string]keytext.Name{"checkpoint": keytext.Name(c.Out)}, false)
	}
	return err
}

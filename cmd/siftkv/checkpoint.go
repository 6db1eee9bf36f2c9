package main

import "github.com/siftkv/siftkv/kv"

// checkpointCommand is the command line of siftkv checkpoint.
type checkpointCommand struct {
	Dir
	Out string `arg:"" help:"Directory of the copy, not there or empty."`
}

// Run makes a checkpoint.
func (c *checkpointCommand) Run(p *program) error {
	err := c.write(nil, func(db *kv.DB) error { return db.Checkpoint(c.Out) })
	if err == nil && p.JSON {
		return p.printJSON(map[string]string{"checkpoint": c.Out}, false)
	}
	return err
}

package main

import "github.com/siftkv/siftkv/kv"

// verifyCommand is the command line of kvbench verify.
type verifyCommand struct {
	Dir string `arg:"" help:"Directory of a SiftKV store that no process has open."`
}

// Run prints one line per file; damage is an error.
func (c *verifyCommand) Run(p *program) error { return kv.Verify(c.Dir, p.stdout) }

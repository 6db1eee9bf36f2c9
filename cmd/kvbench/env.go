package main

import (
	"os"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report"
)

// envCommand is the command line of kvbench env.
type envCommand struct {
	Dir  string `placeholder:"DIR" help:"Where stores would be made (default: the system's temporary directory)."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run prints what a result would say of this machine.
func (c *envCommand) Run(p *program) error {
	dir := c.Dir
	if dir == "" {
		dir = os.TempDir()
	}
	e := environ.Capture(p.argv, dir)
	if !c.JSON {
		return report.Environment(p.stdout, &e)
	}
	return writeJSON(p.stdout, e)
}

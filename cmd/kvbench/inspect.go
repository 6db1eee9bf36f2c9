package main

import (
	"context"
	"io"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/inspect"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report"
)

// inspectCommand is the command line of kvbench inspect.
type inspectCommand struct {
	Path   string `arg:"" help:"Store that no process has open, or a sorted file."`
	Probes int    `default:"20000" placeholder:"N" help:"Random hashes to ask each filter for (default ${default})."`
	Walk   int    `default:"8" placeholder:"N" help:"${inspect_walk}"`
	Files  int    `default:"20" placeholder:"N" help:"Files to show; 0 shows all (default ${default})."`
	jsonFlag
}

// Help shows examples.
func (inspectCommand) Help() string {
	return `Examples:
  kvbench inspect /var/lib/app/store
  kvbench inspect /var/lib/app/store/000012.sst --probes 1000000`
}

// Run looks and prints.
func (c *inspectCommand) Run(ctx context.Context, p *program) error {
	text := func(w io.Writer, r *inspect.Result) error { return report.Inspect(w, r, c.Files) }
	return show(p, text, c.JSON)(inspect.Run(ctx, inspect.Config{Path: c.Path, Probes: c.Probes, Walked: c.Walk}))
}

package main

import (
	"context"
	"strconv"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/traceinfo"
	"github.com/siftkv/siftkv/internal/cli"
)

// traceCommand is the command line of kvbench trace.
type traceCommand struct {
	Info   traceInfoCommand   `cmd:"" help:"What is in a trace: lookups, keys, how uneven, what lacks."`
	Replay traceReplayCommand `cmd:"" help:"Replay a trace on an engine with a filter."`
	Make   traceMakeCommand   `cmd:"" help:"A store of a cell, and a trace of lookups in it."`
}

// traceInfoCommand is the command line of kvbench trace info.
type traceInfoCommand struct {
	File cli.File `arg:"" help:"Trace that lookuptrace.Tracer wrote."`
	jsonFlag
}

// Run reads and prints.
func (c *traceInfoCommand) Run(ctx context.Context, p *program) error {
	return show(p, report.Trace, c.JSON)(traceinfo.Read(ctx, string(c.File)))
}

// traceReplayCommand is the command line of kvbench trace replay: run, with the keys and
// the workload of a trace.
type traceReplayCommand struct {
	File string `arg:"" help:"Trace that lookuptrace.Tracer wrote."`
	runCommand
}

// Help shows examples, and what is behind them.
func (traceReplayCommand) Help() string { return texts().Details["trace replay"] }

// replayLookups is how many lookups are replayed if nothing is said.
const replayLookups = 1_000_000

// Run measures the cell of the trace.
func (c *traceReplayCommand) Run(ctx context.Context, p *program) error {
	if len(c.Keys) > 0 || len(c.Workload) > 0 {
		return bench.Usagef("--keys, --workload: a replay takes both from the trace; kvbench run --keys %s has the "+
			"trace's keys with another workload", c.File)
	}
	c.Keys, c.Workload = []string{c.File}, []string{cell.Replay}
	if keys.IsCount(c.File) {
		c.Keys[0] = "./" + c.File // not a number of keys
	}
	if len(c.Lookups) == 0 {
		c.Lookups = []string{strconv.Itoa(replayLookups)}
	}
	return c.runCommand.Run(ctx, p)
}

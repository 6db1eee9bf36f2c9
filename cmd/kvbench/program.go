package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/compare"
	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/environ"
	"github.com/siftkv/siftkv/internal/bench/readamp"
	"github.com/siftkv/siftkv/internal/bench/ycsb"
	"github.com/siftkv/siftkv/internal/cli"
)

// commands is the command line.
type commands struct {
	Version cli.VersionFlag `help:"Print version and revision, and exit."`

	Run        runCommand        `cmd:"" help:"One experiment: an engine, a filter, a tree, a cache and a workload."`
	Sweep      sweepCommand      `cmd:"" help:"A matrix of experiments, from flags or a file; resumable."`
	Diff       diffCommand       `cmd:"" help:"Two sets of results: counters exactly, times by a rank test."`
	Report     reportCommand     `cmd:"" help:"Results as tables, CSV, benchstat text, SVG charts, or one HTML page."`
	Trace      traceCommand      `cmd:"" help:"Lookup traces of applications: what is in one, and replays on any engine and filter."`
	Inspect    inspectCommand    `cmd:"" help:"A store or a sorted file: levels, filters and what they let pass, indexes, block sizes."`
	Env        envCommand        `cmd:"" help:"The machine and the program, with warnings about what makes times less trustworthy."`
	Readamp    readampCommand    `cmd:"" help:"What a lookup costs, by engine and filter: files, filter checks, blocks, bytes, time."`
	Compare    compareCommand    `cmd:"" help:"How fast SiftKV is beside Pebble, Badger, goleveldb and bbolt: reads, scans, loads and writes."`
	Ycsb       ycsbCommand       `cmd:"" name:"ycsb" help:"YCSB A to F and reads of absent keys, in a closed loop or at a rate."`
	Scale      scaleCommand      `cmd:"" help:"How the cost of a lookup and the memory per key grow from 300,000 keys on."`
	Filters    filtersCommand    `cmd:"" help:"Filter families on their own, beside other libraries: bits per key, false positives, build and probe times."`
	Worker     workerCommand     `cmd:"" hidden:"" help:"What compare runs itself as."`
	Completion completionCommand `cmd:"" help:"A script that completes this command line, for bash, zsh or fish."`
	Verify     verifyCommand     `cmd:"" help:"Check every file of a store, reading only. Exit status 1 if something is damaged."`
}

// A program is kvbench with its surroundings.
type program struct {
	stdout, stderr io.Writer
	argv           []string
	wrap           func(store string, s engine.Store) engine.Store // see readamp.Config
}

// families are the filters that kvbench filters measures by default.
const families = "bloom:10;blocked:10;blocked:16;cuckoo:12;cuckoo:12,4,semisort;xor:8;fuse:8;fuse:8,4;ribbon:7;gcs:7;quotient:7"

const description = `A laboratory for reads of log-structured stores: the same lookups on SiftKV and on Pebble, every answer checked, every read counted.

Exit status: 0 ok, 1 I/O or internal error or damage found, 2 usage, 3 wrong answer or counters that do not add up, 4 a threshold is passed, 5 some cells failed, 130 interrupted.`

// run executes one command line and returns the exit status.
func (p *program) run(ctx context.Context, argv []string) int {
	p.argv = argv
	spec := cli.Program{
		Name: "kvbench", Description: description, Stdout: p.stdout, Stderr: p.stderr,
		Vars: kong.Vars{
			"version": environ.Version(), "engines": strings.Join(readamp.Engines(), ","), "families": families,
			"workloads":    strings.Join(compare.Workloads(), ","),
			"workloadlist": strings.Join(compare.Workloads(), ", "),
			"peers":        strings.Join(engine.Peers(), ", "),
			"ycsbengines":  strings.Join(ycsb.Engines(), ", "),
			"compactions":  strings.Join(engine.CompactionStyles, ", "), "compaction": engine.CompactionStyles[0],
		},
	}
	parsed, err := spec.Parse(ctx, argv, &commands{}, p)
	var usage *cli.UsageError
	switch {
	case errors.As(err, &usage):
		return p.fail(bench.Usagef("%w", err))
	case err != nil:
		return p.fail(err)
	case parsed == nil:
		return bench.StatusOK
	}
	p.stdout = cli.Output(p.stdout)
	return p.fail(parsed.Run())
}

// fail prints an error, if there is one, in one line and returns the exit status.
func (p *program) fail(err error) int {
	switch {
	case err == nil:
	case errors.Is(err, context.Canceled):
		_, _ = fmt.Fprintln(p.stderr, "kvbench: interrupted; the temporary stores are removed")
	default:
		_, _ = fmt.Fprintf(p.stderr, "kvbench: %s\n", cli.Text(err))
	}
	return bench.Status(err)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// commands is the command line.
type commands struct {
	Quiet    bool   `short:"q" help:"No progress."`
	Progress string `default:"auto" enum:"auto,plain,none" placeholder:"MODE" help:"${progress}"`

	Run     runCommand     `cmd:"" help:"${run_about}"`
	Sweep   sweepCommand   `cmd:"" help:"${sweep_about}"`
	Diff    diffCommand    `cmd:"" help:"${diff_about}"`
	Report  reportCommand  `cmd:"" help:"${report_about}"`
	Trace   traceCommand   `cmd:"" help:"${trace_about}"`
	Env     envCommand     `cmd:"" help:"${env_about}"`
	Readamp readampCommand `cmd:"" help:"${readamp_about}"`
	Compare compareCommand `cmd:"" help:"${compare_about}"`
	Ycsb    ycsbCommand    `cmd:"" name:"ycsb" help:"${ycsb_about}"`
	Scale   scaleCommand   `cmd:"" help:"${scale_about}"`
	Filters filtersCommand `cmd:"" help:"${filters_about}"`
	Objects objectsCommand `cmd:"" help:"${objects_about}"`
	Worker  workerCommand  `cmd:"" hidden:"" help:"What compare runs itself as."`

	cli.Standard
}

// A program is kvbench with its surroundings.
type program struct {
	stdout, stderr io.Writer
	argv           []string // as it may be printed
	command        []string // as it is
	progress       *progress.Reporter
	wrap           func(store string, s engine.Store) engine.Store // see cell.Lab
}

// run executes one command line and returns the exit status.
func (p *program) run(ctx context.Context, argv []string) int {
	p.command, p.argv = argv, cli.RedactArgs(argv)
	spec := cli.Program{Name: "kvbench", Description: texts().Description, Stdout: p.stdout, Stderr: p.stderr,
		Vars: vars(), Helps: helps(), Examples: texts().Examples}
	var c commands
	parsed, err := spec.Parse(ctx, argv, &c, p)
	switch {
	case err != nil:
		return p.fail(err)
	case parsed == nil:
		return bench.StatusOK
	}
	if c.Quiet {
		c.Progress = "none"
	}
	p.stdout, p.progress = cli.Output(p.stdout), progress.New(p.stderr, c.Progress)
	return p.fail(parsed.Run())
}

// fail prints an error, if there is one, in one line and returns the exit status.
func (p *program) fail(err error) int {
	if p.progress != nil {
		p.progress.Stop()
	}
	switch {
	case err == nil:
	case errors.Is(err, context.Canceled):
		_, _ = fmt.Fprintln(p.stderr, "kvbench: interrupted; the temporary stores are removed")
	default:
		_, _ = fmt.Fprintf(p.stderr, "kvbench: %s\n", cli.Redact(cli.Text(err), p.command))
	}
	return bench.Status(err)
}

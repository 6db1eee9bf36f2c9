// Command siftstress tries to break the store.
//
//	siftstress --minutes 60
//	siftstress --seed 17 --rounds 3
//
// Several goroutines do everything that the API can, on a disk in memory that fails, tears,
// lies and loses its power as a plan says that is drawn from a seed; the store is held
// against a model after each opening. See docs/stress.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/stress"
)

func main() {
	p := program{stdout: os.Stdout, stderr: os.Stderr}
	cli.Main(p.run)
}

type program struct{ stdout, stderr io.Writer }

// flags are the command line.
type flags struct {
	Version   cli.VersionFlag `help:"Print the version, and exit."`
	Seed      uint64          `help:"Of the first store; the next one has the next seed."`
	Minutes   float64         `help:"End after so many minutes."`
	Rounds    int             `help:"End after so many rounds."`
	Workers   int             `default:"4" help:"Goroutines that write. With one, a seed says nearly all."`
	Features  string          `default:"all" help:"What is done and goes wrong: all, or some of ${features}; -NAME leaves one out (--features=-ttl)."`
	KeepGoing bool            `help:"Go on after a finding."`
	Patience  time.Duration   `default:"30s" help:"How long a store may stand still while somebody waits for it."`
	Verbose   bool            `short:"v" help:"Print a line for each round."`
}

const description = `Tries to break a SiftKV store: several goroutines do everything that its API can, on a disk in memory that fails, tears, lies and loses its power. Without --minutes and --rounds it runs for a minute.

Exit status: 0 nothing was found, 1 something was or could not be printed, 2 usage, 130 interrupted.`

// Exit statuses.
const (
	statusOK          = 0
	statusFound       = 1 // or it is not known, as nothing could be printed
	statusUsage       = 2
	statusInterrupted = 130 // 128 + SIGINT
)

// run executes one command line and returns the exit status.
func (p *program) run(ctx context.Context, argv []string) int {
	var f flags
	spec := cli.Program{Name: "siftstress", Description: description, Stdout: p.stdout, Stderr: p.stderr,
		Vars: kong.Vars{"version": "siftstress", "features": strings.Join(stress.Features, ", ")}}
	parsed, err := spec.Parse(ctx, argv, &f)
	if err == nil && parsed == nil {
		return statusOK
	}
	if err != nil {
		return p.fail(err)
	}
	if f.Minutes == 0 && f.Rounds == 0 {
		f.Minutes = 1
	}
	out := cli.Output(p.stdout)
	report, err := stress.Run(ctx, stress.Config{Seed: f.Seed, Minutes: f.Minutes, Rounds: f.Rounds, Workers: f.Workers,
		Features: f.Features, KeepGoing: f.KeepGoing, Patience: f.Patience, Log: out, Verbose: f.Verbose})
	if report == nil {
		_, _ = fmt.Fprintf(p.stderr, "siftstress: %v\n", err)
		return statusUsage
	}
	werr := report.WriteText(out)
	switch {
	case len(report.Findings) > 0:
		return statusFound
	case errors.Is(err, context.Canceled):
		return statusInterrupted
	}
	return p.fail(errors.Join(err, werr))
}

// fail prints an error, if there is one, and returns the exit status.
func (p *program) fail(err error) int {
	if err == nil {
		return statusOK
	}
	_, _ = fmt.Fprintf(p.stderr, "siftstress: %s\n", cli.Text(err))
	if _, ok := errors.AsType[*cli.UsageError](err); ok {
		return statusUsage
	}
	return statusFound
}

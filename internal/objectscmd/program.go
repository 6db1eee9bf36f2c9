package objectscmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/cli/progress"
	"github.com/siftkv/siftkv/objstore"
)

// Main is the main function of a kvbench with the one command objects, and with a client of S3.
func Main(openS3 func(ctx context.Context, url string) (objstore.Store, error)) {
	p := program{stdout: os.Stdout, stderr: os.Stderr, openS3: openS3}
	cli.Main(p.run)
}

const description = `What a store in an object store costs, in S3 too. All other commands of kvbench are in ` +
	`github.com/siftkv/siftkv/cmd/kvbench.

Exit status: 0 ok, 1 I/O or internal error, 2 usage, 3 wrong answer, 130 interrupted.`

// commands is the command line.
type commands struct {
	Version  cli.VersionFlag `help:"Print version and revision, and exit."`
	Quiet    bool            `short:"q" help:"No progress."`
	Progress string          `default:"auto" enum:"auto,plain,none" placeholder:"MODE" help:"${progress}"`

	Objects    Command    `cmd:"" help:"${objects_about}"`
	Completion completion `cmd:"" help:"${completion_about}"`
}

type completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints the script.
func (c *completion) Run(s *Surrounding, app *kong.Kong) error {
	return cli.Completion(s.Stdout, app, c.Shell)
}

// A program is kvbench with its surroundings.
type program struct {
	stdout, stderr io.Writer
	openS3         func(ctx context.Context, url string) (objstore.Store, error)
}

// run executes one command line and returns the exit status.
func (p *program) run(ctx context.Context, argv []string) int {
	spec := cli.Program{Name: "kvbench", Description: description, Stdout: p.stdout, Stderr: p.stderr, Vars: Vars(),
		Helps: Helps()}
	var c commands
	s := &Surrounding{Stdout: cli.Output(p.stdout), Argv: cli.RedactArgs(argv), OpenS3: p.openS3}
	parsed, err := spec.Parse(ctx, argv, &c, s)
	var usage *cli.UsageError
	switch {
	case errors.As(err, &usage):
		err = bench.Usagef("%w", err)
	case err == nil && parsed != nil:
		if c.Quiet {
			c.Progress = "none"
		}
		s.Progress = progress.New(p.stderr, c.Progress)
		err = parsed.Run()
	}
	switch {
	case err == nil:
	case errors.Is(err, context.Canceled):
		_, _ = fmt.Fprintln(p.stderr, "kvbench: interrupted")
	default:
		_, _ = fmt.Fprintf(p.stderr, "kvbench: %s\n", cli.Redact(cli.Text(err), argv))
	}
	return bench.Status(err)
}

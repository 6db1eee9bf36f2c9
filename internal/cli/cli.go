// Package cli is what the project's programs have in common: how a command line is
// read, and how a program is interrupted.
package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// Main runs a program with the process's arguments and ends the process with the
// status that run returns. An interrupt, a request to terminate or the end of the
// terminal cancels the context, so that the program can clean up; a second one ends the
// process at once. A reader of the output that goes away is an error of a write, and
// no reason to die in the middle of something.
func Main(run func(ctx context.Context, argv []string) (status int)) {
	signal.Ignore(syscall.SIGPIPE)
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	context.AfterFunc(ctx, stop) // the default action is back
	os.Exit(run(ctx, os.Args))
}

// A Program is what the command line says of itself.
type Program struct {
	Name, Description string
	Vars              kong.Vars         // for help texts and defaults; version is what --version prints
	Helps             map[string]string // see Helps
	Examples          map[string]string // by command, such as "trace make", a line each
	Details           map[string]string // by command, what its help says in addition to its flags
	Stdout, Stderr    io.Writer
}

// Parse reads a command line into commands, a pointer to a struct with kong's tags. The caller runs
// the result: the command's Run method may have the context and what is in bind as parameters. It
// returns nil if it has answered --help or --version. Without arguments it answers as to --help. An error matches
// ErrUsage, names what was probably meant and says where to look, or is one of writing that answer.
func (p *Program) Parse(ctx context.Context, argv []string, commands any, bind ...any) (*kong.Context, error) {
	answered := false
	parser, err := kong.New(commands,
		kong.Name(p.Name), kong.Description(p.Description),
		kong.Writers(p.Stdout, p.Stderr), p.Vars, Helps(p.Helps), p.examples(), keepBytes(),
		kong.Exit(func(int) { answered = true }),
		kong.Help(printHelp), kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(bind...),
	)
	if err != nil {
		return nil, err
	}
	args := argv[1:]
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	var unsaid *answerError
	switch {
	case errors.As(err, &unsaid):
		return nil, unsaid.err
	case answered:
		return nil, nil
	}
	return parsed, usage(err, p.Name)
}

func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	return unanswered(kong.DefaultHelpPrinter(options, ctx))
}

// An answerError is one of writing the answer to --help or --version.
type answerError struct{ err error }

func (e *answerError) Error() string { return e.err.Error() }

// unanswered marks an error; an answer without a reader is none.
func unanswered(err error) error {
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return &answerError{err}
}

// Text returns an error as one line that says everything once: of errors that were
// joined, those are left out that the line says already.
func Text(err error) string {
	var line strings.Builder
	for part := range strings.SplitSeq(err.Error(), "\n") {
		if part == "" || strings.Contains(line.String(), part) {
			continue
		}
		if line.Len() > 0 {
			line.WriteString("; ")
		}
		line.WriteString(part)
	}
	return line.String()
}

// Package cli is what the project's programs have in common: how a command line is
// read, and how a program is interrupted.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// Main runs a program with the process's arguments and ends the process with the
// status that run returns. An interrupt or a request to terminate cancels the
// context; a second one ends the process at once.
func Main(run func(ctx context.Context, argv []string) (status int)) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the default action is back
	os.Exit(run(ctx, os.Args))
}

// A Program is what the command line says of itself.
type Program struct {
	Name, Description string
	Vars              kong.Vars // for help texts and defaults; version is what --version prints
	Stdout, Stderr    io.Writer
}

// Parse reads a command line into commands, a pointer to a struct with kong's tags.
// What it returns is to be run: the command's Run method may ask for the context and
// for what is in bind. It returns nil if --help or --version was asked for and has been answered.
// An error is one of usage, names what was probably meant, and says where to look.
func (p *Program) Parse(ctx context.Context, argv []string, commands any, bind ...any) (*kong.Context, error) {
	answered := false
	parser, err := kong.New(commands,
		kong.Name(p.Name), kong.Description(p.Description),
		kong.Writers(p.Stdout, p.Stderr), p.Vars, keepBytes(),
		kong.Exit(func(int) { answered = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(bind...),
	)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.Parse(argv[1:])
	switch {
	case answered:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%w; see %s --help", err, p.Name)
	}
	return parsed, nil
}

package cli

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/siftkv/siftkv/internal/cli/outfile"
)

// Standard is the commands and the flag that every program with commands has. Its struct of commands embeds them.
type Standard struct {
	Version VersionFlag `short:"V" help:"Print the version, and exit."`

	ShowHelp    helpCommand       `cmd:"" name:"help" help:"Print the help of the program, or of a command."`
	ShowVersion versionCommand    `cmd:"" name:"version" help:"Print the version."`
	Completion  completionCommand `cmd:"" help:"Print a script that completes the command line: bash, zsh or fish."`
	Man         manCommand        `cmd:"" help:"Print the page of the manual, for man -l."`
}

// standardExamples are examples of the commands, with NAME in place of the program's name.
var standardExamples = map[string]string{
	"help":       "NAME help\nNAME help completion",
	"version":    "NAME version",
	"completion": "source <(NAME completion bash)\nNAME completion fish > ~/.config/fish/completions/NAME.fish",
	"man":        "NAME man | man -l -\nNAME man > ~/.local/share/man/man1/NAME.1",
}

type helpCommand struct {
	Command []string `arg:"" optional:"" help:"The command."`
}

func (c *helpCommand) Run(app *kong.Kong) error { return again(app, append(c.Command, "--help")...) }

type versionCommand struct{}

func (versionCommand) Run(app *kong.Kong) error { return again(app, "--version") }

// again reads another command line, which answers with no more than a text.
func again(app *kong.Kong, args ...string) error {
	answered := false
	app.Exit = func(int) { answered = true }
	_, err := app.Parse(args)
	var unsaid *answerError
	switch {
	case errors.As(err, &unsaid):
		return unsaid.err
	case answered:
		return nil
	}
	return usage(err, app.Model.Name)
}

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (c *completionCommand) Run(app *kong.Kong) error {
	return Completion(Output(app.Stdout), app, c.Shell)
}

type manCommand struct{}

func (manCommand) Run(app *kong.Kong) error { return Man(Output(app.Stdout), app) }

// VersionFlag prints the version and ends the program.
type VersionFlag bool

// BeforeReset is called by kong.
func (VersionFlag) BeforeReset(app *kong.Kong, vars kong.Vars) error {
	_, err := fmt.Fprintln(app.Stdout, vars["version"])
	app.Exit(0)
	return unanswered(err)
}

// Version is the version of a program as the linker recorded it.
func Version(name string) string {
	v := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v = info.Main.Version
	}
	return name + " " + v
}

// ErrUsage is matched by every error of a command line.
var ErrUsage = errors.New("usage")

// Usagef returns an error that matches ErrUsage and reads as formatted; %w wraps a cause.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

type usageError struct{ error }

func (e usageError) Is(target error) bool { return target == ErrUsage }
func (e usageError) Unwrap() error        { return e.error }

// usage makes an error of kong one that says where to look.
func usage(err error, program string) error {
	if err == nil {
		return nil
	}
	return Usagef("%w; see %s --help", err, program)
}

// Output is standard output for a program that has more to do than to print: once its
// reader has gone, what is written is dropped and the program goes on.
func Output(w io.Writer) io.Writer { return output{w} }

type output struct{ w io.Writer }

func (o output) Write(b []byte) (int, error) {
	n, err := o.w.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		return len(b), nil
	}
	return n, err
}

// An OutFile is a flag that names a file to write. "-" is standard output, which then has nothing else on it, and an
// empty name is no file.
type OutFile string

// Validate is called by kong, before the command does anything.
func (f OutFile) Validate() error {
	if f == "" || f == "-" {
		return nil
	}
	return outfile.Check(string(f))
}

// IsStandard reports whether the file is standard output.
func (f OutFile) IsStandard() bool { return f == "-" }

// Write makes what a function writes the contents of the file, if there is one.
func (f OutFile) Write(stdout io.Writer, contents func(io.Writer) error) error {
	switch f {
	case "":
		return nil
	case "-":
		return contents(stdout)
	}
	return outfile.Write(string(f), contents)
}

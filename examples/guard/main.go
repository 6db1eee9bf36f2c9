// Command guard is a user service with filters in front of its cache and its
// database. README.md has its story; docs/guard.md of the project how such filters
// are chosen, sized and kept.
//
// Exit statuses: 0 ok, 1 a failure, 2 usage, 3 a wrong answer while a load was played.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/examples/guard/internal/load"
)

func main() {
	redis.SetLogger(silent{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program. It returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var f flags
	answered := false
	parser := kong.Must(&f, kong.Name("guard"), kong.Writers(stdout, stderr), kong.Exit(func(int) { answered = true }),
		kong.Description("A user service with filters in front of its cache and its database."))
	_, err := parser.Parse(args)
	switch {
	case answered: // --help
		return 0
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "guard: %v; see guard --help\n", err)
		return 2
	}
	log := newLogger(f, stderr)
	if err := serve(ctx, f, log, stdout); err != nil {
		log.Error("the service ends", "error", err)
		if errors.Is(err, load.ErrWrong) {
			return 3
		}
		return 1
	}
	return 0
}

func newLogger(f flags, out io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.LevelInfo}
	if f.Verbose {
		options.Level = slog.LevelDebug
	}
	if f.Log == "json" {
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}

// silent is the log of go-redis' pools, which would repeat for every connection what
// the service says once.
type silent struct{}

// Printf implements go-redis' logger.
func (silent) Printf(context.Context, string, ...any) {}

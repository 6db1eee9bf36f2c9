package stress

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/siftkv/siftkv/internal/cli"
)

// Exit statuses of the test binary when its flags ask for a run of TestStress.
const (
	statusOK          = 0
	statusFound       = 1 // or unknown, because nothing could be printed
	statusUsage       = 2
	statusInterrupted = 130 // 128 + SIGINT
)

// flags are those of the test binary that say what TestStress does.
type flags struct {
	Config
	given bool // some of them
}

// addFlags adds the flags to a set.
func addFlags(set *flag.FlagSet) *flags {
	f := new(flags)
	set.Uint64Var(&f.Seed, "seed", 0, "of the first store; the next one has the next seed")
	set.Float64Var(&f.Minutes, "minutes", 0, "end after so many `minutes`")
	set.IntVar(&f.Rounds, "rounds", 0, "end after so many `rounds`")
	set.IntVar(&f.Workers, "workers", 4, "goroutines that write; with one, a seed says nearly all")
	set.StringVar(&f.Features, "features", "all", "what is done and goes wrong: all, or some of "+
		strings.Join(Features, ", ")+"; -`NAME` leaves one out (--features=-ttl)")
	set.StringVar(&f.Place, "place", "all", "where stores are: disk, objects (an object store), or all")
	set.BoolVar(&f.KeepGoing, "keep-going", false, "go on after a finding")
	set.DurationVar(&f.Patience, "patience", 30*time.Second,
		"how long a store may stand still while somebody waits for it")
	for _, name := range []string{"v", "verbose"} {
		set.BoolVar(&f.Verbose, name, false, "print a line for each round")
	}
	return f
}

// visit notes whether a parsed set has some of the flags. A run that is not told when to
// end lasts a minute.
func (f *flags) visit(set *flag.FlagSet) {
	set.Visit(func(g *flag.Flag) { f.given = f.given || !strings.HasPrefix(g.Name, "test.") })
	if f.Minutes == 0 && f.Rounds == 0 {
		f.Minutes = 1
	}
}

// commandLine are the flags of this process. A run that they ask for ends with runContext,
// and its status is that of the process.
var (
	commandLine = addFlags(flag.CommandLine)
	runContext  context.Context
	runStatus   = statusOK
)

func TestMain(m *testing.M) {
	if job := os.Getenv(processEnv); job != "" {
		os.Exit(runJob(job))
	}
	flag.Parse()
	commandLine.visit(flag.CommandLine)
	if !commandLine.given {
		os.Exit(m.Run())
	}
	cli.Main(func(ctx context.Context, _ []string) int {
		runContext = ctx
		if failed := m.Run(); runStatus == statusOK {
			return failed
		}
		return runStatus
	})
}

// run prints the report of a run, and returns the exit status.
func (f *flags) run(ctx context.Context, stdout, stderr io.Writer) int {
	out := cli.Output(stdout)
	f.Log = out
	report, err := Run(ctx, f.Config)
	if report == nil {
		_, _ = fmt.Fprintln(stderr, err)
		return statusUsage
	}
	err = errors.Join(err, report.WriteText(out))
	switch {
	case len(report.Findings) > 0:
		return statusFound
	case errors.Is(err, context.Canceled):
		return statusInterrupted
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "stress: %s\n", cli.Text(err))
		return statusFound
	}
	return statusOK
}

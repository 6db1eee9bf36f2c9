// Command kvbench is a laboratory for reads of log-structured stores. It runs the same
// lookups on SiftKV and on other stores and says what each of them cost. docs/bench.md
// has a page for each command:
//
//	kvbench readamp              what a lookup costs, by engine and filter
//	kvbench compare              how fast reads, scans, loads and writes are, by engine
//	kvbench scale                how cost grows with the number of keys
//	kvbench objects              what a store in an object store costs
//	kvbench run                  one experiment
//	kvbench sweep                a matrix of experiments
//	kvbench diff A B             two sets of results
//	kvbench report RESULTS       tables, charts, a page
//	kvbench filters              filter families on their own, beside other libraries
//	kvbench trace replay FILE    an application's lookups on any engine and filter
//	kvbench env                  this machine
//
// Standard output carries results, standard error progress and errors. Exit
// statuses: 0 ok, 1 I/O or internal error, 2 usage, 3 a wrong answer or counters
// that do not add up, 4 a threshold is passed, 5 some cells failed, 130 interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report/chart"
	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/cli/outfile"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

func main() {
	p := program{stdout: os.Stdout, stderr: os.Stderr}
	cli.Main(p.run)
}

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
	Scale   scaleCommand   `cmd:"" help:"${scale_about}"`
	Filters filtersCommand `cmd:"" help:"${filters_about}"`
	Objects objectsCommand `cmd:"" help:"${objects_about}"`

	cli.Standard
}

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
	if slices.Equal(argv[1:], []string{"worker"}) { // its memory is measured: it makes no command line
		return p.fail(p.work())
	}
	spec := cli.Program{Name: "kvbench", Description: texts().Description, Stdout: p.stdout, Stderr: p.stderr,
		Vars: vars(), Helps: helps(), Examples: texts().Examples, Details: texts().Details}
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

// A resultFile is a flag that names a file to write.
type resultFile = cli.OutFile

func writeJSON(w io.Writer, result any) error {
	data, err := bench.JSON(result)
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

// A resultDir is a flag that names a directory to write files to; empty is none.
type resultDir string

// prepare makes the directory, and returns an error if it takes no files. A command
// that computes calls it before.
func (d resultDir) prepare(flag string) error {
	if d == "" {
		return nil
	}
	err := os.MkdirAll(string(d), 0o755)
	if err == nil {
		err = outfile.Check(filepath.Join(string(d), "file"))
	}
	if err != nil {
		return bench.Usagef("%s: %w", flag, err)
	}
	return nil
}

// writePage writes a page, with the cells that it is about, and says where it is.
func (p *program) writePage(f resultFile, d *chart.Data, set []*cell.Result) error {
	err := f.Write(p.stdout, func(w io.Writer) error { return chart.WritePage(w, d, set) })
	if err == nil && f != "" && !f.IsStandard() {
		_, _ = fmt.Fprintf(p.stderr, "kvbench: wrote %s\n", f)
	}
	return err
}

// show returns what prints a result to standard output, and writes it as JSON too if a file is named. Neither
// keeps the other from being done: the result may have taken an hour. It passes an error on.
func show[R any](p *program, text func(io.Writer, R) error, file resultFile) func(R, error) error {
	return func(result R, err error) error {
		if err != nil {
			return err
		}
		if !file.IsStandard() {
			err = text(p.stdout, result)
		}
		return errors.Join(err, file.Write(p.stdout, func(w io.Writer) error { return writeJSON(w, result) }))
	}
}

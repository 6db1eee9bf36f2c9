package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/page"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report/chart"
	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/cli/outfile"
)

// A resultFile is a flag that names a file to write.
type resultFile = cli.OutFile

// writeJSON writes a result as indented JSON.
func writeJSON(w io.Writer, result any) error {
	data, err := page.JSON(result)
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

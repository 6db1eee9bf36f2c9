package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/report/chart"
	"github.com/siftkv/siftkv/internal/cli/outfile"
	"github.com/siftkv/siftkv/internal/objectscmd"
)

func writeJSON(w io.Writer, result any) error { return objectscmd.WriteJSON(w, result) }

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

// draw writes each chart to a file of its own, and says which.
func (d resultDir) draw(p *program, charts []chart.Chart) error {
	if d == "" {
		return nil
	}
	for _, one := range charts {
		path := filepath.Join(string(d), one.ID+".svg")
		if err := outfile.Write(path, func(w io.Writer) error { return chart.SVG(w, &one) }); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(p.stderr, "kvbench: wrote %s\n", path)
	}
	return nil
}

// show is objectscmd.Show to standard output.
func show[R any](p *program, text func(io.Writer, R) error, file resultFile) func(R, error) error {
	return objectscmd.Show(p.stdout, text, file)
}
